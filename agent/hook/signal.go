package hook

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Proc is where processes are found.
const Proc = "/proc"

// Signal sends a signal, such as SIGHUP, to the process pid of the container with this id, if it is in
// a cgroup of that and handles the signal. A process that does not would end by it, or, as the first
// one in its namespace, never learn of it. proc is a folder such as Proc.
func Signal(proc string, pid int, container, name string) error {
	p, err := os.FindProcess(pid) // from here on it is this process, also if the number is given to another one
	if err != nil {
		return err
	}
	defer p.Release()
	dir := filepath.Join(proc, strconv.Itoa(pid))
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return fmt.Errorf("its process: %w", err)
	}
	if !strings.Contains(string(groups), container) {
		return fmt.Errorf("process %d is in no cgroup of the container: its runtime class may run it in a virtual machine, where %s cannot be sent to it", pid, name)
	}
	signal := unix.SignalNum(name)
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return fmt.Errorf("its process: %w", err)
	}
	if !handles(status, int(signal)) {
		return fmt.Errorf("its first process does not handle %s", name)
	}
	return p.Signal(signal)
}

// handles reports whether a process catches a signal or, to read it from a file, blocks it (Linux,
// Documentation/filesystems/proc.rst: SigCgt, SigBlk).
func handles(status []byte, signal int) bool {
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		field, text, _ := strings.Cut(lines.Text(), ":")
		if field != "SigCgt" && field != "SigBlk" {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err == nil && mask&(1<<(signal-1)) != 0 {
			return true
		}
	}
	return false
}
