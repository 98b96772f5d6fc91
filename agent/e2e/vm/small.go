package main

import "fmt"

// fitsALittleMachine: five pods start, are left alone when the agent is killed and
// restart when they are; nothing is killed for want of memory.
func fitsALittleMachine(b *box) error {
	if err := b.pods(5); err != nil {
		return err
	}
	if err := b.leavesAlone(5, b.killAgent); err != nil {
		return err
	}
	free, err := b.sh(`p=$(systemctl show -P MainPID monopod)
echo "the agent has $(awk '/VmRSS/ {print $2, $3}' /proc/$p/status), the machine $(awk '/MemAvailable/ {print $2, $3}' /proc/meminfo) available"
no journalctl -k -b -o cat --grep 'out of memory'`)
	if err != nil {
		return err
	}
	fmt.Println(free)
	return b.restarts("web0")
}

// killAgent kills the agent and waits for the next one.
func (b *box) killAgent() error {
	pid, err := b.sh(`p=$(systemctl show -P MainPID monopod); kill -9 $p; echo $p`)
	if err != nil {
		return err
	}
	return b.agentIsAnother(pid)
}

// restarts ends the container of a pod, and waits until the next one runs. What ends it may
// be killed with it.
func (b *box) restarts(pod string) error {
	before, err := b.sh(fmt.Sprintf(`monopod ps --no-headers %[1]s | awk '{print $5}'; monopod exec %[1]s -- sh -c 'kill -TERM 1' || [ $? = 137 ]`, pod))
	if err != nil {
		return err
	}
	return b.until(fmt.Sprintf(`l=$(monopod ps --no-headers %s); echo "$l"
[ "$(awk '{print $4, $5}' <<<"$l")" = "Running $((%s + 1))" ]`, pod, before))
}

// toleratesSwap: with swap on the agent runs, and pods get none of it.
func toleratesSwap(b *box) error {
	defer func() { _, _ = b.sh("swapoff /swap; rm -f /swap") }()
	return b.all("fallocate -l 128M /swap; chmod 600 /swap; mkswap -q /swap; swapon /swap",
		"systemctl restart monopod").then(func() error {
		const limit = "resources: {requests: {memory: 16Mi}, limits: {memory: 32Mi}}"
		if err := b.pod("lim", "", limit); err != nil {
			return err
		}
		if err := b.says(running(1)); err != nil {
			return err
		}
		return b.all(`g=/sys/fs/cgroup$(cut -d: -f3 /proc/$(pgrep -f '^sh -c trap')/cgroup)
[ $(cat $g/memory.max) = 33554432 ]; [ $(cat $g/memory.swap.max) = 0 ]`).err
	})
}

// waitsForResolvConf: without an /etc/resolv.conf pods run on, and so do new ones that bring
// their own; others wait, as the runtime needs the file, and start when it is there.
func waitsForResolvConf(b *box) error {
	if err := b.pods(1); err != nil {
		return err
	}
	const back = "[ ! -e /etc/resolv.conf.away ] || mv /etc/resolv.conf.away /etc/resolv.conf"
	defer func() { _, _ = b.sh(back) }()
	if _, err := b.sh("touch /etc/resolv.conf; mv /etc/resolv.conf /etc/resolv.conf.away"); err != nil {
		return err
	}
	if err := b.leavesAlone(1, b.killAgent); err != nil {
		return err
	}
	if err := b.pod("own", "dnsPolicy: None\n  dnsConfig: {nameservers: [10.0.0.10]}", ""); err != nil {
		return err
	}
	if err := b.pod("hosts", "", ""); err != nil {
		return err
	}
	if err := b.says("3 pods: 2 running, 1 waiting"); err != nil {
		return err
	}
	if err := b.until(`monopod ps 2>&1 | grep '/hosts: .*open /etc/resolv.conf: no such file'
i=$(systemctl show -P InvocationID monopod)
journalctl -o cat _SYSTEMD_INVOCATION_ID=$i | grep 'no name servers' | grep -F /etc/resolv.conf`); err != nil {
		return err
	}
	return b.all(back).then(func() error { return b.says(running(3)) })
}

// keepsNames does something after which the agent must call itself and its pods as before.
func (b *box) keepsNames(do func() error) error {
	const names = `monopod ps -o name; cd /var/lib/monopod/status/pods; ls; for p in $(ls /var/lib/monopod/pods); do echo $p; done
grep -o '"name": *"box"' ../node.json`
	before, err := b.sh(names)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after := ""
	err = b.until("monopod ps >/dev/null")
	if err == nil {
		after, err = b.sh(names)
	}
	if err == nil && after != before {
		err = fmt.Errorf("there are\n%s\nbefore there were\n%s", after, before)
	}
	return err
}

// rebootRenamed reboots a machine that has another host name then.
func (b *box) rebootRenamed() error {
	if _, err := b.sh("echo renamed >/etc/hostname"); err != nil {
		return err
	}
	if err := b.reboot(); err != nil {
		return err
	}
	_, err := b.sh("[ $(hostname) = renamed ]; echo box >/etc/hostname; hostname box")
	return err
}
