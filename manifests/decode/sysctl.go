package decode

import "strings"

// SysctlName turns net/ipv4/conf/eth0.1/x into net.ipv4.conf.eth0/1.x: if the first separator is a
// slash, slashes and dots are swapped.
func SysctlName(name string) string {
	i := strings.IndexAny(name, "./")
	if i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

// SysctlNamespace returns "IPC" or "Net", or "" for a setting, or a pattern of settings, that
// applies to the whole machine.
func SysctlNamespace(name string) string {
	name = SysctlName(name)
	for _, prefix := range []string{"kernel.shm", "kernel.msg", "fs.mqueue."} {
		if strings.HasPrefix(name, prefix) {
			return "IPC"
		}
	}
	switch {
	case name == "kernel.sem":
		return "IPC"
	case strings.HasPrefix(name, "net."):
		return "Net"
	}
	return ""
}
