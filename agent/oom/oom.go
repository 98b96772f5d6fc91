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
	"strings"
	"syscall"
	"time"
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
	At         time.Time // when its record was read
}

// In reports whether the process was of the container with this id. Each runtime and cgroup driver
// has a name of its own for a container's cgroup, with the id in it.
func (k Kill) In(id string) bool { return id != "" && strings.Contains(k.Cgroup, id) }

// Watch calls seen for each kill that the kernel logs in the file at path, such as Log, from now on.
// It returns when ctx ends, with nil, or when the log cannot be read.
func Watch(ctx context.Context, path string, seen func(Kill)) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	defer context.AfterFunc(ctx, func() { f.Close() })()
	if _, err := f.Seek(0, io.SeekEnd); err != nil && !errors.Is(err, syscall.ESPIPE) {
		return err
	}
	var report report
	for record := make([]byte, recordMax); ; {
		n, err := f.Read(record) // one record, or several whole ones
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.EPIPE): // records were overwritten before they were read
			report.reset()
			continue
		case err != nil:
			return err
		}
		for line := range strings.Lines(string(record[:n])) {
			if k, is := report.add(line); is {
				k.At = time.Now()
				seen(k)
			}
		}
	}
}
