package hook

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProcess makes a folder such as Proc, in which a process is in a cgroup and handles signals by
// these masks.
func asProcess(t *testing.T, pid int, cgroup, caught, blocked string) string {
	t.Helper()
	proc := t.TempDir()
	dir := filepath.Join(proc, strconv.Itoa(pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cgroup": "3:memory:" + cgroup + "\n0::" + cgroup + "\n",
		"status": fmt.Sprintf("Name:\tsh\nSigQ:\t0/1\nSigPnd:\t0000000000000000\nSigBlk:\t%s\nSigIgn:\tffffffffffffffff\nSigCgt:\t%s\n", blocked, caught),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func TestASignalIsSentToAProcessThatHandlesIt(t *testing.T) {
	const none, hup = "0000000000000000", "0000000000000001"
	self := os.Getpid()
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGHUP)
	defer signal.Stop(got)
	for _, row := range []struct {
		name, cgroup, caught, blocked, want string
	}{
		{"it catches it", "/kubepods/pod1/c1", hup, none, ""},
		{"it blocks it and reads it from a file", "/kubepods/pod1/c1/own", none, hup, ""},
		{"it does not handle it", "/kubepods/pod1/c1", "fffffffffffffffe", none, "its first process does not handle SIGHUP"},
		{"it is not of the container", "/kubepods/pod1/c2", hup, none, "is in no cgroup of the container"},
	} {
		err := Signal(asProcess(t, self, row.cgroup, row.caught, row.blocked), self, "c1", "SIGHUP")
		if row.want != "" {
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: %v, want %s", row.name, err, row.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		select {
		case <-got:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it gets none", row.name)
		}
	}
	select {
	case <-got:
		t.Error("a signal that is not handled, or to another one, was sent")
	default:
	}
}

func TestNoSignalGoesToAProcessThatHasEnded(t *testing.T) {
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	if err := Signal(asProcess(t, pid, "/c1", "0000000000000001", "0000000000000000"), pid, "c1", "SIGHUP"); err == nil {
		t.Error("no error")
	}
	if err := Signal(t.TempDir(), os.Getpid(), "c1", "SIGHUP"); err == nil {
		t.Error("no error of a process that is not found")
	}
}
