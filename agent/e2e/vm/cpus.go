package main

import "fmt"

// givesCPUs: with systemd as the driver of cgroups, a container that requests whole cpus has them for
// itself, which others do not use, also after systemd has read its units again: two are the threads of
// one core, and one is beside the thread that is reserved. The machine is left with the runtime and
// the settings that it had.
func givesCPUs(b *box) error {
	if err := b.use(b.maker.by(systemd)); err != nil {
		return err
	}
	const static = `cd /etc/monopod; cp -p config.yaml config.before
sed -i 's/^#*cgroupDriver: .*/cgroupDriver: systemd/; s/^#*cpuManagerPolicy: .*/cpuManagerPolicy: static/; s/^#*reservedSystemCPUs: .*/reservedSystemCPUs: "0"/' config.yaml
[ $(diff config.before config.yaml | grep -c '^>') = 3 ]; systemctl restart monopod`
	const cores = `[ "$(cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | xargs)" = "0-1 0-1 2-3 2-3" ]`
	const back = `mv /etc/monopod/config.before /etc/monopod/config.yaml; systemctl restart monopod`
	for _, step := range []func() error{
		func() error { return b.all(cores, static).err },
		func() error { return b.pod("shares", "", "") },
		func() error { return b.pod("core", "", "resources: {limits: {cpu: 2, memory: 32Mi}}") },
		func() error { return b.until(runOn("2-3", "0-1")) },
		func() error { return b.pod("thread", "", "resources: {limits: {cpu: 1, memory: 32Mi}}") },
		func() error { return b.says(running(3)) },
		func() error { return b.until(runOn("1 2-3", "0")) },
		func() error {
			return b.all("systemctl daemon-reload", runOn("1 2-3", "0"), "rm /etc/monopod/manifests/core.yaml").err
		},
		func() error { return b.until(runOn("1", "0,2-3")) },
		func() error { return b.all("rm /etc/monopod/manifests/thread.yaml").err },
		func() error { return b.until(runOn("", "0-3")) },
		func() error { return b.all("rm /etc/monopod/manifests/*").then(b.noPods) },
		func() error { return b.use(b.maker.usual) },
		func() error { return b.all(back).err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// runOn is a script that checks, by their cgroups and by the kernel, on which processors the programs
// run that have some for themselves, the lowest first, and on which the other one runs.
func runOn(own, others string) string {
	return fmt.Sprintf(`own= others=
for p in $(pgrep -f '^sh -c trap'); do
	g=/sys/fs/cgroup$(cut -d: -f3 /proc/$p/cgroup)
	on=$(awk '/^Cpus_allowed_list/ {print $2}' /proc/$p/status)
	[ "$on" = "$(cat $g/cpuset.cpus)" ] || { echo "process $p runs on $on, and its cgroup has $(cat $g/cpuset.cpus)"; false; }
	case $g in
	*/kubepods.slice/kubepods-pod*) own="$own $on" ;;
	*) others=$on ;;
	esac
done
own=$(printf '%%s\n' $own | sort | xargs)
[ "$own/$others" = %[1]q ] || { echo "they run on $own/$others, not on "%[1]q; false; }`, own+"/"+others)
}
