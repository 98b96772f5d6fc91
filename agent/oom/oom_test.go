package oom

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	ofContainer = "6,1201,20108966399,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=f51,mems_allowed=0," +
		"oom_memcg=/kubepods/burstable/pod1,task_memcg=/kubepods/burstable/pod1/f51,task=tail,pid=10009,uid=0\n" +
		"3,1203,20108966399,-;Memory cgroup out of memory: Killed process 10009 (tail) total-vm:9kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
	ofMachine = "6,1202,20108966399,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0," +
		"global_oom,task_memcg=/system.slice/cron.service,task=cron,pid=7,uid=0\n" +
		"3,1204,20108966399,-;Out of memory: Killed process 7 (cron) total-vm:9kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
)

func TestKillsAreSeenUntilTheContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	kernel, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	ctx, cancel := context.WithCancel(t.Context())
	kills, ended := make(chan Kill, 2), make(chan error, 1)
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- log.Watch(ctx, func(k Kill) { kills <- k }) }()
	next := func(log string) Kill {
		t.Helper()
		if _, err := kernel.WriteString(logged(t, log, 0)); err != nil {
			t.Fatal(err)
		}
		select {
		case k := <-kills:
			return k
		case <-time.After(10 * time.Second):
			t.Fatalf("no kill is seen of %s", log)
			return Kill{}
		}
	}
	if k := next(ofContainer); k.Process != "tail" {
		t.Errorf("saw %+v, want tail", k)
	}
	if k := next("6,1,1,-;something else\n" + ofMachine); k.Process != "cron" {
		t.Errorf("saw %+v, want cron", k)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}

func TestALogThatCannotBeReadIsAnError(t *testing.T) {
	if log, err := Open(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) || log != nil {
		t.Errorf("%v, %v", log, err)
	}
}

// logged returns a log all of whose records were logged so long ago.
func logged(t *testing.T, log string, ago time.Duration) string {
	t.Helper()
	kernel := int64(math.MaxInt64)
	for _, clock := range clocks {
		var now unix.Timespec
		if err := unix.ClockGettime(clock, &now); err != nil {
			t.Fatal(err)
		}
		kernel = min(kernel, now.Nano())
	}
	stamp := number((time.Duration(kernel) - ago).Microseconds())
	return regexp.MustCompile("(?m)^([0-9]+,[0-9]+),[0-9]+,").ReplaceAllString(log, "${1},"+stamp+",")
}

// A kill while no agent ran counts, and one that the last agent had no time to report.
func TestFormerKillsAreSeenAsSuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	text := logged(t, ofContainer, time.Minute) + logged(t, ofMachine, -time.Hour) // a clock that goes wrong
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []Kill
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = log.Watch(t.Context(), func(k Kill) { got = append(got, k) })
	if !errors.Is(err, io.EOF) { // a file ends, unlike the log
		t.Error(err)
	}
	if len(got) != 1 || !got[0].Former || got[0].Process != "tail" {
		t.Fatalf("%+v", got)
	}
	if ago := time.Since(got[0].At); ago < time.Minute || ago > 2*time.Minute {
		t.Errorf("it was logged %s ago", ago)
	}
}

// An agent that gets no processor, as on a machine without memory, reads the log late.
func TestAKillIsOfTheMomentWhenItWasLogged(t *testing.T) {
	chosen, _, _ := strings.Cut(ofContainer, "\n")
	for _, row := range []struct {
		name string
		log  string
		want time.Duration // ago
	}{
		{"it is read at once", logged(t, ofContainer, 0), 0},
		{"it is read late", logged(t, ofContainer, 30*time.Second), 30 * time.Second},
		{"the kernel's clock cannot be compared", logged(t, ofContainer, -time.Hour), 0},
		{"its record has no time", chosen + "\n3,1203;Memory cgroup out of memory: Killed process 10009 (tail) total-vm:9kB\n", 0},
		{"its record has a time that is none", strings.ReplaceAll(ofContainer, ",20108966399,", ",soon,"), 0},
	} {
		k := &Kills{isUpToDate: true}
		if err := k.read([]byte(row.log), nil); err != nil {
			t.Fatal(err)
		}
		got := k.all
		if len(got) != 1 || got[0].Former {
			t.Errorf("%s: %+v", row.name, got)
			continue
		}
		if off := time.Since(got[0].At) - row.want; off < -time.Second || off > 10*time.Second {
			t.Errorf("%s: it was logged %s ago", row.name, time.Since(got[0].At))
		}
	}
}

// What was overwritten before it was read is not combined with what comes next.
func TestRecordsThatWereOverwritten(t *testing.T) {
	k := &Kills{isUpToDate: true}
	chosen, killed, _ := strings.Cut(ofContainer, "\n")
	for _, part := range []struct {
		text string
		err  error
	}{{chosen + "\n", nil}, {"", syscall.EINTR}, {"", syscall.EPIPE}, {killed, nil}} {
		if err := k.read([]byte(part.text), part.err); err != nil {
			t.Error(err)
		}
	}
	if len(k.all) > 0 {
		t.Errorf("saw %+v", k.all)
	}
}

// How a container ended may be decided for good before the kill that ended it was handed on.
func TestAnEndIsJudgedByAllThatWasLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	kernel, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	kills, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer kills.Close()
	write := func(log string) {
		t.Helper()
		if _, err := kernel.WriteString(logged(t, log, 0)); err != nil {
			t.Fatal(err)
		}
	}
	of := func(id string) string {
		return strings.NewReplacer("f51", id, "10009", "10010").Replace(ofContainer)
	}

	write(of("a1"))
	if k := kills.Last("a1", time.Now().Add(-time.Hour)); k == nil {
		t.Error("what was logged before the first question is not known")
	}
	write(of("b2"))
	if k := kills.Last("b2", time.Now().Add(-time.Hour)); k != nil {
		t.Error("the log is read for a container that ended long ago")
	}
	if k := kills.Last("b2", time.Now()); k == nil || k.Former {
		t.Errorf("of a container that has just ended is known: %+v", k)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var seen []string
	if err := kills.Watch(ctx, func(k Kill) {
		if seen = append(seen, filepath.Base(k.Cgroup)); len(seen) == 2 {
			cancel()
		}
	}); err != nil || strings.Join(seen, " ") != "a1 b2" {
		t.Errorf("%v are handed on, %v", seen, err)
	}
}

// The kernel sends the signal before it logs that it did (Linux, __oom_kill_process), after it has
// logged its choice: a container may end between the two.
func TestAContainerThatEndsBeforeItsKillIsLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	kernel, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	kills, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer kills.Close()
	chosen, _, _ := strings.Cut(logged(t, ofContainer, 0), "\n")
	if _, err := kernel.WriteString(chosen + "\n"); err != nil {
		t.Fatal(err)
	}
	if k := kills.Last("f51", time.Now()); k == nil {
		t.Error("nothing is known of the process that the kernel kills")
	}
}

// A process that was going to be killed and ended by itself has nothing to do with the end of its
// container, days later.
func TestAChoiceIsOfItsMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	chosen, _, _ := strings.Cut(logged(t, ofContainer, time.Hour), "\n")
	if err := os.WriteFile(path, []byte(chosen+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kills, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer kills.Close()
	if k := kills.Last("f51", time.Now()); k == nil || time.Since(k.At) < time.Minute {
		t.Errorf("of a choice an hour ago it is said %+v", k)
	}
}
