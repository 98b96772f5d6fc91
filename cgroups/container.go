package cgroups

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// In a container with a cgroup namespace of its own, such as Docker makes with cgroup v2, all
// processes are in the topmost cgroup that the container sees. It is not the machine's root, so it
// delegates no controllers as long as they are there: cgroups(7), "no internal processes".

// aside is the cgroup to which the processes of a container move, as in docker-in-docker.
const aside = "init"

// vacateTries bounds how often the processes are listed, as others start meanwhile.
const vacateTries = 10

// vacate moves the processes in a cgroup to one of their own below it.
func (t *tree) vacate(dir string) error {
	to := filepath.Join(dir, aside)
	if err := t.mkdir(to); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	text, err := read(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	pids := strings.Fields(text)
	if slices.Contains(pids, "0") { // which would move this process instead
		return fmt.Errorf("%s has a process of another pid namespace: start monopod in that of the container", dir)
	}
	for _, pid := range pids {
		if err := t.write(filepath.Join(to, "cgroup.procs"), pid); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// isContainers reports whether a cgroup holds all of a container: it is the root of this process's
// cgroup namespace, and not that of the machine. What systemd manages, in a container or in the
// namespace of a service, is systemd's.
func isContainers(dir string) bool {
	return holdsAContainer(dir, "/proc/self/mountinfo", "/run/systemd/system")
}

// holdsAContainer is isContainers with this process's mountinfo, and the folder that is there where
// systemd runs: sd_booted(3).
func holdsAContainer(dir, mountinfo, booted string) bool {
	hasType := exists(filepath.Join(dir, "cgroup.type")) // as all but the machine's root
	if !hasType || exists(booted) {
		return false
	}
	f, err := os.Open(mountinfo)
	if err != nil {
		return false
	}
	defer f.Close()
	return isNamespaceRoot(f, dir)
}

// isNamespaceRoot reports whether the root of the reader's cgroup namespace is mounted at a mount
// point, by the reader's mountinfo: proc_pid_mountinfo(5). The last mount hides those before it.
func isNamespaceRoot(mountinfo io.Reader, mount string) bool {
	is := false
	for s := bufio.NewScanner(mountinfo); s.Scan(); {
		fields := strings.Fields(s.Text())
		kind := slices.Index(fields, "-") + 1
		if kind > 5 && kind < len(fields) && fields[4] == mount {
			is = fields[kind] == "cgroup2" && fields[3] == "/"
		}
	}
	return is
}
