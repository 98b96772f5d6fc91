package main

import "fmt"

// givesCPUs: with systemd as the driver of cgroups, a container that requests a whole cpu has one for
// itself, which others do not use, also after systemd has read its units again. The machine is left
// with the runtime and the settings that it had.
func givesCPUs(b *box) error {
	if err := b.runtime(containerd1, systemd); err != nil {
		return err
	}
	const static = `cd /etc/monopod; cp -p config.yaml config.before
sed -i 's/^#*cgroupDriver: .*/cgroupDriver: systemd/; s/^#*cpuManagerPolicy: .*/cpuManagerPolicy: static/; s/^#*reservedSystemCPUs: .*/reservedSystemCPUs: "0"/' config.yaml
[ $(diff config.before config.yaml | grep -c '^>') = 3 ]; systemctl restart monopod`
	const back = `mv /etc/monopod/config.before /etc/monopod/config.yaml; systemctl restart monopod`
	const left, all = "0,2-3", "0-3"
	for _, step := range []func() error{
		func() error { return b.all(static).err },
		func() error { return b.pod("shares", "", "") },
		func() error { return b.pod("owns", "", "resources: {limits: {cpu: 1, memory: 32Mi}}") },
		func() error { return b.says(running(2)) },
		func() error { return b.until(runOn("1", left)) },
		func() error {
			return b.all("systemctl daemon-reload", runOn("1", left), "rm /etc/monopod/manifests/owns.yaml").err
		},
		func() error { return b.until(runOn("", all)) },
		func() error { return b.all("rm /etc/monopod/manifests/*").then(b.noPods) },
		func() error { return b.runtime(containerd1, cgroupfs) },
		func() error { return b.all(back).err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// runOn is a script that checks on which processors the program runs that has some for itself, by
// its cgroup and by the kernel, and on which the others run.
func runOn(own, others string) string {
	return fmt.Sprintf(`own= others=
for p in $(pgrep -f '^sh -c trap'); do
	g=/sys/fs/cgroup$(cut -d: -f3 /proc/$p/cgroup)
	on="$(cat $g/cpuset.cpus) $(awk '/^Cpus_allowed_list/ {print $2}' /proc/$p/status)"
	case $g in
	*/kubepods.slice/kubepods-pod*) own=$on ;;
	*) others=$on ;;
	esac
done
[ "$own/$others" = %[1]q ] || { echo "they run on $own/$others, not on "%[1]q; false; }`, twice(own)+"/"+twice(others))
}

// twice is a list of processors as a cgroup and the kernel say it; "": nothing runs.
func twice(list string) string {
	if list == "" {
		return ""
	}
	return list + " " + list
}
