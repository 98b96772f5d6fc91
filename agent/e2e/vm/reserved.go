package main

// holdsTheSystem: with systemd as the driver of cgroups, the processes of a slice are held to what is
// reserved for them, also after systemd has read its units again, and one that takes more is killed.
// Without the slice the agent says so, and starts once it is there. The machine is left with the
// runtime and the settings that it had.
func holdsTheSystem(b *box) error {
	const (
		settings = `cd /etc/monopod; cp -p config.yaml config.before; sed -i 's/^#*cgroupDriver: .*/cgroupDriver: systemd/' config.yaml
cat >>config.yaml <<'EOF'
systemReserved: {cpu: 500m, memory: 64Mi, pid: "100"}
systemReservedCgroup: /trial.slice/trial-others.slice
enforceNodeAllocatable: [pods, system-reserved]
EOF
no systemctl restart monopod`
		missing = `journalctl -u monopod -o cat -n 20 | grep -F 'systemReservedCgroup /trial.slice/trial-others.slice: there is no such cgroup'`
		slice   = `systemd-run -q --unit other --slice trial-others.slice sleep 100000`
		held    = `g=/sys/fs/cgroup/trial.slice/trial-others.slice; grep -q trial-others.slice/other.service /proc/$(systemctl show -P MainPID other)/cgroup
is="$(cat $g/cpu.weight $g/memory.max $g/pids.max | tr '\n' ' ')"; [ "$is" = "20 67108864 100 " ] || { echo "it is held to $is"; false; }`
		kills  = `{ monopod events | grep -cE 'SystemOOM|OOMKilling' || true; }`
		greedy = kills + ` >/run/kills; systemd-run -q --unit greedy --slice trial-others.slice tail /dev/zero`
		killed = `[ $(systemctl show -P Result greedy) = oom-kill ]; systemctl is-active other; systemctl reset-failed greedy; [ $(` + kills + `) = $(cat /run/kills) ]`
		back   = `systemctl stop other trial.slice; systemctl revert trial-others.slice; mv /etc/monopod/config.before /etc/monopod/config.yaml
[ -z "$(ls /run/systemd/system.control 2>/dev/null)" ] || { ls -R /run/systemd/system.control; }; systemctl restart monopod`
	)
	for _, step := range []func() error{
		func() error { return b.use(b.maker.by(systemd)) },
		func() error { return b.all(settings).err },
		func() error { return b.until(missing) },
		func() error { return b.all(slice).err },
		func() error { return b.until("systemctl is-active monopod") },
		func() error { return b.all(held, "systemctl daemon-reload", held, greedy).err },
		func() error { return b.until(killed) },
		func() error { return b.all(held).err },
		func() error { return b.use(b.maker.usual) },
		func() error { return b.all(back).err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
