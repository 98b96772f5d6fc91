// Package oom reads from the kernel's log which processes the kernel killed for want of memory.
package oom

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
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
}

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
	for record := make([]byte, recordMax); ; {
		n, err := f.Read(record) // one record, or several whole ones
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.EPIPE): // records were overwritten before they were read
		case err != nil:
			return err
		}
		for line := range strings.Lines(string(record[:n])) {
			if k, is := parse(line); is {
				seen(k)
			}
		}
	}
}

// parse returns the kill that a line of the log reports (Linux, Documentation/ABI/testing/dev-kmsg,
// and mm/oom_kill.c, dump_oom_victim). Lines that processes wrote to the log do not count.
func parse(line string) (k Kill, is bool) {
	prefix, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ";")
	priority, _, _ := strings.Cut(prefix, ",")
	level, err := strconv.Atoi(priority)
	if err != nil || level>>3 != 0 { // the kernel's own facility, which a process cannot choose
		return k, false
	}
	text, is = strings.CutPrefix(text, "oom-kill:")
	if !is {
		return k, false
	}
	where, victim, is := strings.Cut(text, ",task=")
	if !is {
		return k, false
	}
	victim, _, _ = cutLast(victim, ",uid=")
	name, pid, is := cutLast(victim, ",pid=")
	if k.PID, err = strconv.Atoi(pid); err != nil || !is {
		return k, false
	}
	k.Process = name
	_, k.Limit, _ = strings.Cut(where, ",oom_memcg=")
	k.Limit, k.Cgroup, is = strings.Cut(k.Limit, ",task_memcg=")
	if !is { // the machine has no memory left, for all its processes or those of some memory nodes
		_, k.Cgroup, is = strings.Cut(where, ",task_memcg=")
		k.Limit = ""
	}
	return k, is
}

// cutLast is strings.Cut around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	k := strings.LastIndex(s, sep)
	if k < 0 {
		return s, "", false
	}
	return s[:k], s[k+len(sep):], true
}
