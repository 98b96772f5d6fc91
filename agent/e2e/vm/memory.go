package main

import "fmt"

// nullWriter is a program of four bytes for x86-64, in base64: it writes to address 0.
const nullWriter = "f0VMRgIBAQAAAAAAAAAAAAIAPgABAAAAeABAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAEAAOAABAAAAAAAAAAEAAAAFAAAAAAAAAAAAAAAAAEAA" +
	"AAAAAAAAQAAAAAAAfAAAAAAAAAB8AAAAAAAAAAAQAAAAAAAAMcCJAA=="

// tellsOfKills: the kernel is told to kill a process as where the machine has no memory left, which is
// no pod's, and then one of a pod. The node has an event of each, the pod's container ended for that,
// and all others are left alone. A program that crashes, under names which read as if the kernel had
// killed a process, is none of these.
func tellsOfKills(b *box) error {
	if err := b.pods(2); err != nil {
		return err
	}
	const (
		crash = `cd $(mktemp -d); base64 -d >',task_memcg=z,task=x,pid=7,uid=0' <<<` + nullWriter + `; chmod 755 ,*
cp ,* 'emory: Killed process 7 (x) total-vm:9kB'; ln -s ,* oom-kill:; ./oom-kill: || ./emory* || true
journalctl -k -o cat | grep '^oom-kill:.* in ,task_memcg=z,task=x'; journalctl -k -o cat | grep ' in emory: Killed process 7 (x) '`
		hoards = `(head -c 30000000 /dev/zero; sleep 100000) | tail` // which keeps the last line
		greedy = `systemd-run -q --unit greedy -p OOMScoreAdjust=1000 sh -c '` + hoards + `'`
		kill   = `p=$(pgrep -x tail); [ $(awk '/^VmRSS/ {print $2}' /proc/$p/status) -gt 25000 ]; echo $p >/run/hoards; echo f >/proc/sysrq-trigger`
		noPods = `systemctl stop greedy; systemctl reset-failed greedy || true; if monopod events | grep -E 'OOMKilling|process: x,'; then false; fi`
		told   = `monopod ps 2>&1 | grep -F 'hungry: container main: OOMKilled: exit code 137, out of memory: the kernel killed its process tail: the machine ran out of memory'
grep -F '"reason": "OOMKilled"' /var/lib/monopod/status/pods/default_hungry-box.json`
	)
	return b.leavesAlone(2, func() error {
		for _, step := range []func() error{
			func() error { return b.all(crash, greedy).err },
			func() error { return b.until(kill) },
			func() error { return b.until(eventOf("SystemOOM", "victim process: tail, pid: $(cat /run/hoards)")) },
			func() error { return b.all(noPods).err },
			func() error { return b.podWith(hoards, "hungry", "restartPolicy: Never", "") },
			func() error { return b.until(kill) },
			func() error { return b.until(eventOf("SystemOOM", "victim process: tail, pid: $(cat /run/hoards)")) },
			func() error { return b.until(told) },
			func() error { return b.all(killedIn("hungry"), "rm /etc/monopod/manifests/hungry.yaml").err },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
}

// killedIn is a script that looks for the event of a pod whose process was killed.
func killedIn(pod string) string {
	return fmt.Sprintf(`monopod events --for %s >/run/events
grep OOMKilling /run/events | grep -F 'The kernel killed the process tail: the node has no memory left' || { cat /run/events; false; }`, pod)
}

// eventOf is a script that looks for an event with this reason and these words.
func eventOf(reason, words string) string {
	return fmt.Sprintf(`monopod events >/run/events
grep %s /run/events | grep -F "%s" || { cat /run/events; false; }`, reason, words)
}
