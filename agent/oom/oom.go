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
	Former     bool      // it was logged before the log was opened
}

// In reports whether the process was of the container with this id. Each runtime and cgroup driver
// has a name of its own for a container's cgroup, with the id in it.
func (k Kill) In(id string) bool { return id != "" && strings.Contains(k.Cgroup, id) }

// Open opens the kernel's log in the file at path, such as Log.
func Open(path string) (*Kills, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Kills{file: f, raw: raw, opened: time.Now(), more: make(chan struct{}, 1)}, nil
}

// Watch calls seen for each kill that the kernel has logged, and for those that it logs from now on.
// It returns when ctx ends, with nil, or when the log cannot be read. The log is closed then.
func (k *Kills) Watch(ctx context.Context, seen func(Kill)) error {
	defer k.Close()
	defer context.AfterFunc(ctx, k.Close)()
	ended := make(chan error, 1)
	go func() { ended <- k.follow() }()
	for {
		select {
		case <-k.more:
		case err := <-ended:
			k.handOn(seen)
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		k.handOn(seen)
	}
}

// Close closes the log.
func (k *Kills) Close() {
	if k != nil {
		k.file.Close()
	}
}

// follow reads the log until it cannot be read any more.
func (k *Kills) follow() error {
	var end error
	err := k.raw.Read(func(fd uintptr) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		end = k.readOn(int(fd))
		return end != nil
	})
	return errors.Join(err, end)
}

// handOn calls seen for each kill for which it was not called before.
func (k *Kills) handOn(seen func(Kill)) {
	k.mu.Lock()
	fresh := k.fresh
	k.fresh = nil
	k.mu.Unlock()
	for _, kill := range fresh {
		seen(kill)
	}
}

// readOn reads what has been logged since the last time, without waiting for more. k.mu is locked.
func (k *Kills) readOn(fd int) error {
	for part := make([]byte, recordMax); ; {
		n, err := unix.Read(fd, part)
		if n == 0 && err == nil {
			err = io.EOF
		}
		if errors.Is(err, unix.EAGAIN) {
			k.isUpToDate = true
			return nil
		}
		if err := k.read(part[:max(n, 0)], err); err != nil {
			return err
		}
	}
}

// read reads a part of the log: one record, or several whole ones. err is the error of reading it.
func (k *Kills) read(part []byte, err error) error {
	switch {
	case errors.Is(err, syscall.EINTR):
		return nil
	case errors.Is(err, syscall.EPIPE): // records were overwritten before they were read
		k.report.reset()
		return nil
	case err != nil:
		return err
	}
	for line := range strings.Lines(string(part)) {
		kill, is := k.report.add(line)
		chosen := k.report.chosen
		isChoice := chosen != nil && chosen.At.IsZero()
		if !is && !isChoice {
			continue
		}
		at, isKnown := k.timeOf(line)
		if isChoice && !isKnown {
			k.report.reset()
		}
		if isChoice && isKnown {
			chosen.At = at
		}
		if !is || !isKnown {
			continue
		}
		kill.At = at
		kill.Former = !k.isUpToDate && kill.At.Before(k.opened)
		k.add(kill)
	}
	return nil
}

// timeOf returns when a record was logged. One that is read as it comes is of now, if its own time
// cannot be compared; false: it is a former one.
func (k *Kills) timeOf(line string) (at time.Time, isKnown bool) {
	at, isComparable := loggedAt(line)
	if !isComparable && k.isUpToDate {
		return time.Now(), true
	}
	return at, isComparable
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
