package oom

import (
	"slices"
	"strconv"
	"strings"
)

// report is what the kernel has logged of the kill that it is about (Linux, mm/oom_kill.c and
// mm/memcontrol.c). It works on one at a time, and logs, with much between:
//
//	tail invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999
//	memory: usage 24576kB, limit 24576kB, failcnt 95
//	oom-kill:constraint=CONSTRAINT_MEMCG,...,oom_memcg=/a,task_memcg=/a/b,task=tail,pid=477,uid=0
//	Memory cgroup out of memory: Killed process 477 (tail) total-vm:25344kB, anon-rss:23168kB, ...
//
// The second is only there if a limit was reached. A process that ends by itself meanwhile is not
// killed: the last one is missing.
//
// The kernel also logs names that others chose, such as those of a program that crashed and of its
// file, with nothing before them. A program's name has at most 15 bytes: each of these lines is known
// by more than that.
type report struct {
	used, most int64
	chosen     *Kill // which process is going to be killed; nil: none
}

func (r *report) reset() { *r = report{} }

// add reads the next line of the log and returns the kill that it completes. Lines that processes
// wrote to the log do not count.
func (r *report) add(line string) (Kill, bool) {
	text, is := ofKernel(line)
	if !is {
		return Kill{}, false
	}
	if k, is := choice(text); is {
		k.Used, k.Most = r.used, r.most
		if k.Limit == "" {
			k.Used, k.Most = 0, 0
		}
		r.chosen = &k
		return Kill{}, false
	}
	if isInvoked(text) {
		r.reset()
	}
	if used, most, is := usage(text); is {
		r.used, r.most = used, most
	}
	if r.chosen == nil {
		return Kill{}, false
	}
	k := *r.chosen
	k.Resident, is = killed(text, k.PID)
	if is {
		r.reset()
	}
	return k, is
}

// ofKernel returns the text of a line, if the kernel itself logged it (Linux,
// Documentation/ABI/testing/dev-kmsg).
func ofKernel(line string) (text string, is bool) {
	prefix, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ";")
	priority, _, _ := strings.Cut(prefix, ",")
	level, err := strconv.Atoi(priority)
	return text, err == nil && level>>3 == 0 // the kernel's own facility, which a process cannot choose
}

// nameMax is the length in bytes of the longest name of a program (Linux, TASK_COMM_LEN).
const nameMax = 15

// isInvoked reports whether the kernel begins to look for a process to kill (dump_header).
func isInvoked(text string) bool {
	name, _, is := strings.Cut(text, " invoked oom-killer: gfp_mask=")
	return is && len(name)-len(`x0a`)*strings.Count(name, `\x`) <= nameMax // bytes that do not print are logged as \x0a
}

// choice returns which process is going to be killed, and for want of which memory (dump_oom_victim).
func choice(text string) (k Kill, is bool) {
	text, is = strings.CutPrefix(text, "oom-kill:constraint=")
	if !is {
		return k, false
	}
	where, victim, is := strings.Cut(text, ",task=")
	if !is {
		return k, false
	}
	victim, _, _ = cutLast(victim, ",uid=")
	name, pid, _ := cutLast(victim, ",pid=")
	var err error
	if k.PID, err = strconv.Atoi(pid); err != nil {
		return k, false
	}
	k.Process = name
	_, k.Limit, _ = strings.Cut(where, ",oom_memcg=")
	k.Limit, k.Cgroup, is = strings.Cut(k.Limit, ",task_memcg=")
	if !is { // the machine has no memory left, for all its processes or those of some memory nodes
		_, k.Cgroup, is = strings.Cut(where, ",task_memcg=")
	}
	return k, is
}

// usage returns the memory and the limit of the cgroup whose limit was reached, in bytes
// (mem_cgroup_print_oom_meminfo).
func usage(text string) (used, most int64, is bool) {
	text, is = strings.CutPrefix(text, "memory: usage ")
	usage, rest, _ := strings.Cut(text, ", limit ")
	limit, _, _ := strings.Cut(rest, ",")
	used, known := kibibytes(usage)
	most, limited := kibibytes(limit)
	return used, most, is && known && limited
}

// reasons are why the kernel says that it kills a process (out_of_memory, mem_cgroup_out_of_memory).
var reasons = []string{"Memory cgroup out of memory", "Out of memory", "Out of memory (oom_kill_allocating_task)"}

// killed returns the memory in bytes of the process that was killed, if it is this one
// (__oom_kill_process).
func killed(text string, pid int) (resident int64, is bool) {
	reason, text, is := strings.Cut(text, ": Killed process "+strconv.Itoa(pid)+" (")
	if !is || !slices.Contains(reasons, reason) {
		return 0, false
	}
	_, amounts, _ := cutLast(text, ") total-vm:") // a name may have parentheses
	for _, kind := range []string{", anon-rss:", ", file-rss:", ", shmem-rss:"} {
		_, amount, _ := strings.Cut(amounts, kind)
		amount, _, _ = strings.Cut(amount, ",")
		n, known := kibibytes(amount)
		if !known {
			return 0, true
		}
		resident += n
	}
	return resident, true
}

// kibibytes parses an amount such as 24kB and returns it in bytes.
func kibibytes(text string) (int64, bool) {
	text, is := strings.CutSuffix(text, "kB")
	n, err := strconv.ParseInt(text, 10, 53)
	return n << 10, is && err == nil && n >= 0
}

// cutLast is strings.Cut around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	k := strings.LastIndex(s, sep)
	if k < 0 {
		return s, "", false
	}
	return s[:k], s[k+len(sep):], true
}
