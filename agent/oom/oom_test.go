package oom

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
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
	go func() { ended <- Watch(ctx, path, func(k Kill) { kills <- k }) }()
	if _, err := kernel.WriteString(ofContainer + "6,1,1,-;something else\n" + ofMachine); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tail", "cron"} {
		select {
		case k := <-kills:
			if k.Process != want || time.Since(k.At) > time.Minute {
				t.Errorf("saw %+v, want %s", k, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s is not seen", want)
		}
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
	if err := Watch(t.Context(), filepath.Join(t.TempDir(), "none"), func(Kill) {}); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// What was logged before is not seen again.
func TestOnlyNewKillsAreSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(path, []byte(ofContainer), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Watch(t.Context(), path, func(k Kill) { t.Errorf("saw %+v", k) }) // a file ends, unlike the log
	if err == nil {
		t.Error("the end is no error")
	}
}
