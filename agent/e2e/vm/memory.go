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
			func() error { return b.until(killedIn("hungry", "tail")) },
			func() error { return b.all("rm /etc/monopod/manifests/hungry.yaml").err },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
}

// tellsOfExhaustion: a pod takes all memory that there is. It is killed and told for that, and all
// others are left alone.
//
// On a machine of one processor and little memory, where the services keep theirs (memory.min) and there
// are no huge pages: else the kernel discards the services' programs, which are read again at once, and
// moves pages, before it kills any process. An emulator does that for minutes. They keep not all: with
// the files that they have read there would be nothing left for the pod.
func tellsOfExhaustion(b *box) error {
	const (
		spares = `echo %s >/sys/kernel/mm/transparent_hugepage/enabled
systemctl set-property --runtime system.slice MemoryMin=%s`
		takes = `exec dd if=/dev/zero of=/dev/null bs=$(awk '/^MemTotal/ {print $2 - 20000}' /proc/meminfo)K count=1`
		noted = `journalctl -k -b -o cat | sed -n 's/^Out of memory: Killed process \([0-9]*\) (dd).*/\1/p' >/run/takes; [ -s /run/takes ]`
	)
	if err := b.pods(2); err != nil {
		return err
	}
	defer func() { _, _ = b.sh(fmt.Sprintf(spares, "always", "0")) }()
	return b.leavesAlone(2, func() error {
		for _, step := range []func() error{
			func() error { return b.all(fmt.Sprintf(spares, "never", "120M")).err },
			func() error { return b.podWith(takes, "takes-all", "restartPolicy: Never", "") },
			func() error { return b.until(noted) },
			func() error { return b.until(eventOf("SystemOOM", "victim process: dd, pid: $(cat /run/takes)")) },
			func() error { return b.until(killedIn("takes-all", "dd")) },
			func() error { return b.all("rm /etc/monopod/manifests/takes-all.yaml").err },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
}

// killedIn is a script that looks whether the table, the status and the events of a pod tell that the
// kernel killed this process of it.
func killedIn(pod, process string) string {
	return fmt.Sprintf(`monopod ps 2>&1 | grep -F '%[1]s: container main: OOMKilled: exit code 137, out of memory: the kernel killed its process %[2]s: the machine ran out of memory'
grep -F '"reason": "OOMKilled"' /var/lib/monopod/status/pods/default_%[1]s-box.json
monopod events --for %[1]s >/run/events
grep OOMKilling /run/events | grep -F 'The kernel killed the process %[2]s: the node has no memory left' || { cat /run/events; false; }`, pod, process)
}

// eventOf is a script that looks for an event with this reason and these words.
func eventOf(reason, words string) string {
	return fmt.Sprintf(`monopod events >/run/events
grep %s /run/events | grep -F "%s" || { cat /run/events; false; }`, reason, words)
}
