package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"monopod/agent/gc"
	"monopod/agent/podlog"
	"monopod/cri/critest"
)

// one returns the one path that a pattern in the agent's root dir has.
func (r *rig) one(pattern string) string {
	r.Helper()
	all, _ := filepath.Glob(filepath.Join(r.dir, pattern))
	if len(all) != 1 {
		r.Fatalf("%s: %s", pattern, all)
	}
	return all[0]
}

// A container makes it a terabyte without privileges and without writing a byte.
func TestAHugeHostsFileGivesWayToANewOne(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		hosts := r.one("pods/*/etc-hosts")
		before, err := os.ReadFile(hosts)
		noErr(r.T, err)
		noErr(r.T, os.Truncate(hosts, 1<<40))
		r.Exit("c", 1)
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if i, err := os.Stat(hosts); err != nil || i.Size() != int64(len(before)) {
			r.Fatalf("it has %d bytes, want %d: %v", i.Size(), len(before), err)
		}
		if now, err := os.ReadFile(hosts); err != nil || string(now) != string(before) {
			r.Errorf("it says %q: %v", now, err)
		}
	})
}

func TestALogThatIsNoFileIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	noErr(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("2026-01-01T00:00:00Z stderr F secret\n"), 0o600))
	noErr(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	noErr(t, os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "link")))
	noErr(t, os.Symlink(dir, filepath.Join(dir, "folder", "c")))
	noErr(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	if got := podlog.Last(filepath.Join(dir, "secret"), 80, 2048); got != "secret\n" {
		t.Fatalf("a log reads %q", got)
	}
	for _, path := range []string{"link", "fifo", "folder", "folder/c/secret"} {
		if got := podlog.Last(filepath.Join(dir, path), 80, 2048); got != "" {
			t.Errorf("%s reads %q", path, got)
		}
	}
}

func (r *rig) terminationLogs() []string {
	all, _ := filepath.Glob(filepath.Join(r.dir, "pods/*/containers/*/*"))
	return all
}

func TestATerminationLogGoesWithItsContainer(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Exits(1).Writes("/dev/termination-log", "bye"))
		r.want(manifest("web", "img:1"))
		r.after(time.Hour)
		if n := r.Count("StartContainer"); n < 10 {
			r.Fatalf("only %d starts: the test proves nothing", n)
		}
		if logs, all := r.terminationLogs(), r.Containers(); len(logs) != len(all) {
			r.Errorf("%d containers have %d termination logs", len(all), len(logs))
		}
		last := r.status("default/web-n").ContainerStatuses[0].LastTerminationState.Terminated
		if last == nil || last.Message != "bye" {
			r.Errorf("the last message is %+v", last)
		}
	})
}

// A container that cannot be made leaves no termination log for each try.
func TestFailedCreatesLeaveOneTerminationLogAtMost(t *testing.T) {
	live(t, func(r *rig) {
		r.Fault(critest.On("CreateContainer").Fail(codes.Unknown, "no"))
		r.want(manifest("web", "img:1"))
		r.after(10 * time.Minute)
		if n := r.Count("CreateContainer"); n < 3 {
			r.Fatalf("only %d tries: the test proves nothing", n)
		}
		if logs := r.terminationLogs(); len(logs) > 1 {
			r.Errorf("left: %s", logs)
		}
	})
}

// What an agent that was killed left goes at the next start, also of containers
// that run on.
func TestTerminationLogsOfAKilledAgentGo(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		mine := r.one("pods/*/containers/c/*")
		dir := filepath.Dir(mine)
		r.kill()
		noErr(r.T, os.WriteFile(filepath.Join(dir, "0badf00d"), nil, 0o666))
		noErr(r.T, os.WriteFile(filepath.Join(dir, "notes"), nil, 0o666))
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		if got, want := r.terminationLogs(), []string{filepath.Join(dir, "notes"), mine}; !sameNames(got, want) {
			r.Errorf("left %s, want %s", got, want)
		}
	})
}

func sameNames(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// Links in the folder of logs lead garbage collection nowhere.
func TestGarbageLogsAreNotLookedForBehindLinks(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		outside := t.TempDir()
		names := []string{"1.log", "2.log", "3.log", "c/1.log", "c/2.log", "c/3.log"}
		tree(t, outside, names...)
		pod := filepath.Dir(filepath.Dir(r.one("logs/*/c/0.log")))
		uid := pod[strings.LastIndex(pod, "_")+1:]
		noErr(r.T, os.Symlink(outside, filepath.Join(pod, "d")))
		noErr(r.T, os.Symlink(outside, filepath.Join(filepath.Dir(pod), "ns_other_"+uid)))
		tree(t, pod, "e/1.log", "e/2.log", "e/3.log")
		r.after(gc.GarbageEvery + time.Second)
		if got := left(t, outside); !slices.Equal(got, names) {
			r.Errorf("left %s", got)
		}
		if got := left(t, filepath.Join(pod, "e")); len(got) != 2 {
			r.Errorf("of our own: left %s", got)
		}
	})
}
