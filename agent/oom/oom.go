// Package oom reads from the kernel's log which processes the kernel killed for want of memory.
//
// Of all records of such a kill this one tells most. It names the cgroup of the process, in whose
// path the runtime puts the id of the container, and stays true when container and cgroup are gone.
// The counters of a cgroup (memory.oom_control, memory.events) go with it; that of the pod's, which
// stays, says neither which container it was nor, with cgroup v1, anything of those below it. And a
// read of the log that waits for the next record costs nothing. Where the log cannot be read, and
// where the kernel left a record out, as it does of many kills within seconds, what the runtime
// reports of a container is all that is known.
package oom

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Log is the file of the kernel's log.
const Log = "/dev/kmsg"

// recordMax is the length in bytes of the longest record (Linux, PRINTK_MESSAGE_MAX and its prefix).
const recordMax = 8 << 10

// Kill is a process that the kernel killed for want of memory.
type Kill struct {
	Process string // its name, which it chose: up to 15 bytes of any kind
	PID     int    // in the first pid namespace
	Cgroup  string // of the process, from the root of its hierarchy
	Limit   string // the cgroup whose limit was reached; "": the machine had no memory left

	Used, Most int64     // of Limit, in bytes: its memory and its limit; 0: not known
	Resident   int64     // memory of the process, in bytes; 0: not known
	At         time.Time // when it was logged
	Former     bool      // it was logged before the log was watched
}

// In reports whether the process was of the container with this id. Each runtime and cgroup driver
// has a name of its own for a container's cgroup, with the id in it.
func (k Kill) In(id string) bool { return id != "" && strings.Contains(k.Cgroup, id) }

// Watch calls seen for each kill that the kernel has logged in the file at path, such as Log, and
// for those that it logs from now on. It returns when ctx ends, with nil, or when the log cannot be
// read.
func Watch(ctx context.Context, path string, seen func(Kill)) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	defer context.AfterFunc(ctx, func() { f.Close() })()
	log := &log{seen: seen}
	if err := log.readFormer(f); err != nil {
		return unlessEnded(ctx, err)
	}
	for part := make([]byte, recordMax); ; {
		n, err := f.Read(part)
		if err := log.read(part[:max(n, 0)], err, false); err != nil {
			return unlessEnded(ctx, err)
		}
	}
}

// unlessEnded returns nil instead of an error after ctx ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// log is what has been read of a log.
type log struct {
	seen   func(Kill)
	report report
}

// readFormer reads what has been logged, without waiting for more.
func (l *log) readFormer(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var end error
	err = raw.Read(func(fd uintptr) bool {
		for part := make([]byte, recordMax); end == nil; {
			n, err := unix.Read(int(fd), part)
			if n == 0 && err == nil {
				err = io.EOF
			}
			end = l.read(part[:max(n, 0)], err, true)
		}
		return true
	})
	if errors.Is(end, unix.EAGAIN) {
		end = nil
	}
	return errors.Join(err, end)
}

// read reads a part of the log: one record, or several whole ones. err is the error of reading it.
func (l *log) read(part []byte, err error, isFormer bool) error {
	switch {
	case errors.Is(err, syscall.EINTR):
		return nil
	case errors.Is(err, syscall.EPIPE): // records were overwritten before they were read
		l.report.reset()
		return nil
	case err != nil:
		return err
	}
	for line := range strings.Lines(string(part)) {
		k, is := l.report.add(line)
		if !is {
			continue
		}
		at, isComparable := loggedAt(line)
		switch {
		case isComparable:
			k.At = at
		case isFormer:
			continue
		default:
			k.At = time.Now()
		}
		k.Former = isFormer
		l.seen(k)
	}
	return nil
}

// clocks are those by one of which the kernel's own clock goes: the adjusted one on some virtual
// machines, the other one elsewhere. They drift from each other by seconds a day.
var clocks = []int32{unix.CLOCK_MONOTONIC, unix.CLOCK_MONOTONIC_RAW}

// loggedAt returns when a record was logged, from its time on the kernel's own clock: the latest
// time that a clock allows; false: the kernel's clock goes as none of them, as after a snapshot of a
// virtual machine.
func loggedAt(line string) (at time.Time, isComparable bool) {
	fields := strings.SplitN(line, ",", 4)
	if len(fields) < 4 {
		return time.Time{}, false
	}
	stamp, err := strconv.ParseInt(fields[2], 10, 53) // microseconds
	if err != nil {
		return time.Time{}, false
	}
	for _, clock := range clocks {
		var now unix.Timespec
		if unix.ClockGettime(clock, &now) != nil {
			continue
		}
		ago := time.Duration(now.Nano()) - time.Duration(stamp)*time.Microsecond
		logged := time.Now().Add(-ago)
		if ago > -time.Second && logged.After(at) {
			at, isComparable = logged, true
		}
	}
	return at, isComparable
}
