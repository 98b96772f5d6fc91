package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// written returns how many bytes a process has caused to be written to disks.
func written(pid int) (float64, error) {
	return field(fmt.Sprintf("/proc/%d/io", pid), "write_bytes")
}

// errNoStrace: system calls cannot be counted here.
var errNoStrace = errors.New("strace is not installed")

// scheduling are the calls of Go's scheduler, whose number depends on how busy the machine is.
const scheduling = " futex nanosleep epoll_pwait sched_yield tgkill rt_sigreturn getpid madvise restart_syscall "

// traced is what a process did while it was traced.
type traced struct {
	calls  float64 // all system calls but scheduling
	syncs  float64 // those that wait for a disk
	wakes  float64 // how often it did something after all of its threads had slept for asleep
	length time.Duration
}

// asleep is how long no thread makes a system call when a process rests.
const asleep = 20 * time.Millisecond

// trace counts what a process does during do. Times are meaningless meanwhile.
func trace(ctx context.Context, pid int, do func() error) (t traced, err error) {
	path, err := exec.LookPath("strace")
	if err != nil {
		return t, errNoStrace
	}
	var out bytes.Buffer
	s := exec.CommandContext(ctx, path, "-f", "-ttt", "-s", "0", "-p", strconv.Itoa(pid))
	s.Stderr = &out
	if err := s.Start(); err != nil {
		return t, err
	}
	pause(ctx, time.Second) // until it is attached to all threads
	began := time.Now()
	err = do()
	_ = s.Process.Signal(syscall.SIGINT)
	_ = s.Wait() // its code is that of the interrupt
	t = readTrace(out.String(), began)
	t.length = time.Since(began)
	if err == nil && t.calls == 0 {
		err = fmt.Errorf("strace counted nothing: %s", out.String())
	}
	return t, err
}

// readTrace reads lines such as "[pid 7] 1763840000.000001 close(3) = 0".
func readTrace(lines string, began time.Time) (t traced) {
	last := 0.0
	for line := range strings.Lines(lines) {
		if after, ok := strings.CutPrefix(line, "[pid"); ok {
			_, line, _ = strings.Cut(after, "] ")
		}
		stamp, what, _ := strings.Cut(line, " ")
		at, err := strconv.ParseFloat(stamp, 64)
		if err != nil || at < float64(began.UnixMicro())/1e6 {
			continue
		}
		if at-last >= asleep.Seconds() {
			t.wakes++
		}
		last = at
		name, _, called := strings.Cut(what, "(")
		switch {
		case !called || strings.HasPrefix(what, "<... ") || strings.Contains(scheduling, " "+name+" "):
		case name == "fsync" || name == "fdatasync" || name == "syncfs":
			t.syncs++
			fallthrough
		default:
			t.calls++
		}
	}
	return t
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
