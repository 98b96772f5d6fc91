package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// field returns a number of a file of lines "name: number ...", such as /proc/PID/status.
func field(file, name string) (float64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseFloat(strings.Fields(v)[0], 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name)
}

// wakeups returns how often the threads of a process have gone to sleep.
func wakeups(pid int) (sum float64, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, t := range threads {
		if n, err := field(t, "voluntary_ctxt_switches"); err == nil { // else the thread has ended
			sum += n
		}
	}
	return sum, err
}

// written returns how many bytes a process has caused to be written to disks.
func written(pid int) (float64, error) {
	return field(fmt.Sprintf("/proc/%d/io", pid), "write_bytes")
}

// errNoStrace: system calls cannot be counted here.
var errNoStrace = errors.New("strace is not installed")

// scheduling are the calls of Go's scheduler, whose number depends on how busy the machine is.
const scheduling = " futex nanosleep epoll_pwait sched_yield tgkill rt_sigreturn getpid madvise restart_syscall "

// syscalls counts the system calls of a process during do: all but scheduling, and those
// that wait for a disk. Times are meaningless meanwhile.
func syscalls(ctx context.Context, pid int, do func() error) (all, syncs float64, err error) {
	path, err := exec.LookPath("strace")
	if err != nil {
		return 0, 0, errNoStrace
	}
	var out bytes.Buffer
	s := exec.CommandContext(ctx, path, "-c", "-f", "-U", "name,calls", "-p", strconv.Itoa(pid))
	s.Stderr = &out
	if err := s.Start(); err != nil {
		return 0, 0, err
	}
	pause(ctx, time.Second) // until it is attached to all threads
	err = do()
	_ = s.Process.Signal(syscall.SIGINT)
	_ = s.Wait() // its code is that of the interrupt
	for line := range strings.Lines(out.String()) {
		name, calls, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, nerr := strconv.ParseFloat(strings.TrimSpace(calls), 64)
		switch {
		case nerr != nil || name == "total" || strings.Contains(scheduling, " "+name+" "):
		case name == "fsync" || name == "fdatasync" || name == "syncfs":
			syncs += n
			fallthrough
		default:
			all += n
		}
	}
	if err == nil && all == 0 {
		err = fmt.Errorf("strace counted nothing: %s", out.String())
	}
	return all, syncs, err
}

// growth is how much more of a count than at the last measurement is a failure: counts
// do not depend on how busy the machine is, times do.
const growth = 1.3

// grown compares the counts with those in a file of an earlier measurement and returns
// one line for each that grew. No file is no comparison, which is said.
func (s *sheet) grown(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		say("SKIPPED: counts are NOT compared: there is no %s", path)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []*row
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	last := sheet{rows: rows}
	var worse []string
	for _, r := range s.rows {
		for _, was := range last.rows {
			if was.Figure != r.Figure || !r.Count || len(was.Monopod) == 0 || len(r.Monopod) == 0 {
				continue
			}
			if now, then := median(r.Monopod), median(was.Monopod); now > growth*then && now-then >= 1 {
				worse = append(worse, fmt.Sprintf("%s: %.1f %s, %.1f at the last measurement", r.Figure, now, r.Unit, then))
			}
		}
	}
	return worse, nil
}
