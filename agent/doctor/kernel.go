package doctor

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"monopod/agent/message"
	"monopod/agent/podspec"
)

// unified reports whether the machine has cgroup v2.
func (m *Machine) unified() bool { return m.hasFile("sys/fs/cgroup/cgroup.controllers") }

// controllers checks whether limits can be enforced.
func controllers(_ context.Context, m *Machine) (found []Finding) {
	version, have := "v1", m.enabled()
	if m.unified() {
		text, _ := os.ReadFile(m.file("sys/fs/cgroup/cgroup.controllers"))
		version, have = "v2", strings.Fields(string(text))
	}
	for _, name := range []string{"cpu", "memory", "pids"} {
		if slices.Contains(have, name) {
			continue
		}
		remedy := "boot a kernel that has it"
		if name == "memory" {
			remedy = "add cgroup_enable=memory cgroup_memory=1 to the kernel's command line (on a Raspberry Pi: /boot/firmware/cmdline.txt) and reboot"
		}
		found = append(found, fail(remedy, "cgroup %s without the controller %s: no pod can start", version, name))
	}
	return orOK(found, "%s with cpu, memory and pids", version)
}

// enabled returns the controllers of cgroup v1, from lines of name, hierarchy, number
// of cgroups and whether it is enabled.
func (m *Machine) enabled() (names []string) {
	text, _ := os.ReadFile(m.file("proc/cgroups"))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 4 && f[3] == "1" {
			names = append(names, f[0])
		}
	}
	return names
}

// clock checks whether the time can be right.
func clock(_ context.Context, m *Machine) []Finding {
	remedy := "have chronyd or ntpd keep it right, in a container on its host"
	if m.hasSystemd() {
		remedy = "timedatectl set-ntp true"
	}
	now := message.Time(m.Now)
	if m.Now.Year() < 2025 {
		return []Finding{fail(remedy, "it is %s, says the clock: no certificate of a registry or URL is valid", now)}
	}
	state, err := unix.Adjtimex(new(unix.Timex))
	if err == nil && state == unix.TIME_ERROR {
		return []Finding{warn(remedy, "nothing keeps the clock right")}
	}
	return []Finding{ok("%s", now)}
}

// swap checks for swap, which the limits of cgroups leave out.
func swap(_ context.Context, m *Machine) []Finding {
	text, _ := os.ReadFile(m.file("proc/swaps"))
	if strings.Count(strings.TrimSpace(string(text)), "\n") == 0 {
		return []Finding{ok("none")}
	}
	if m.Config.FailSwapOn {
		return []Finding{fail("swapoff --all, or failSwapOn: false in the settings", "swap is on, and failSwapOn forbids it")}
	}
	return []Finding{warn("swapoff --all, if pods' memory is to be what their limits say", "on: pods may be slow instead of killed for memory")}
}

// kernel checks for what containers need.
func kernel(_ context.Context, m *Machine) (found []Finding) {
	systems, _ := os.ReadFile(m.file("proc/filesystems"))
	if !strings.Contains(string(systems), "\toverlay\n") {
		found = append(found, warn("modprobe overlay", "no overlay file system: the runtime may not unpack images"))
	}
	if !m.hasFile("proc/sys/kernel/seccomp") {
		found = append(found, warn("boot a kernel with CONFIG_SECCOMP_FILTER", "no seccomp: pods with the profile RuntimeDefault do not start"))
	}
	const noUsers = "no user namespaces: pods with hostUsers: false do not start"
	n, err := os.ReadFile(m.file("proc/sys/user/max_user_namespaces"))
	switch {
	case err != nil:
		found = append(found, warn("boot a kernel with CONFIG_USER_NS", noUsers))
	case strings.TrimSpace(string(n)) == "0":
		found = append(found, warn("sysctl --write user.max_user_namespaces=10000", noUsers))
	}
	return orOK(found, "overlay, seccomp and user namespaces")
}

// resolvConf checks whether pods get name servers.
func resolvConf(_ context.Context, m *Machine) []Finding {
	path := m.Config.ResolvConf
	if path == "" {
		return []Finding{ok("this machine is the name server")}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return []Finding{warn("name the right file with --resolv-conf", "pods get no name servers: %v", err)}
	}
	conf, err := podspec.ParseResolvConf(text)
	switch {
	case err != nil:
		return []Finding{warn("correct it, or name another file with --resolv-conf", "pods get no name servers: %s: %v", path, err)}
	case len(conf.Servers) == 0:
		return []Finding{warn("wait for the machine's network, or name another file with --resolv-conf", "pods get no name servers: %s names no name server", path)}
	}
	for _, server := range conf.Servers {
		if ip, err := netip.ParseAddr(server); err == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
			return []Finding{warn("--resolv-conf /run/systemd/resolve/resolv.conf, if systemd-resolved runs",
				"%s names %s, which is another one inside of a pod", path, server)}
		}
	}
	return []Finding{ok("%s", path)}
}
