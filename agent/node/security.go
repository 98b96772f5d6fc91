package node

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// securityFiles are the paths from which the security features of the machine are read.
type securityFiles struct {
	statfs func(path string, fs *unix.Statfs_t) error
	label  string // file of the label of this process, see proc_pid_attr(5)
	cpus   string // folder of the processors
}

func theMachine() securityFiles {
	return securityFiles{unix.Statfs, "/proc/self/attr/current", "/sys/devices/system/cpu"}
}

// selinux reports whether SELinux is enabled, by the same test as runtimes: its file system is
// mounted for writing, and a policy has given this process a label of its own.
func (m securityFiles) selinux() bool {
	var fs unix.Statfs_t
	err := m.statfs("/sys/fs/selinux", &fs)
	if err != nil || uint32(fs.Type) != unix.SELINUX_MAGIC || fs.Flags&unix.ST_RDONLY != 0 {
		return false
	}
	own, err := os.ReadFile(m.label)
	return err == nil && string(bytes.TrimRight(own, "\x00\n")) != "kernel"
}

// masked returns the paths that containers must not see beside the defaults: the temperatures of
// the processors (kubelet: the same), in order of the processors.
func (m securityFiles) masked() []string {
	paths, _ := filepath.Glob(filepath.Join(m.cpus, "cpu[0-9]*", "thermal_throttle"))
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return paths
}
