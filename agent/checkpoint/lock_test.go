package checkpoint

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestTheLockOfARootDirIsAFileOfItsOwn(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		make func(lock string) error
		says string
	}{
		{"a link", func(lock string) error { return os.Symlink(other, lock) }, "is a link: remove it"},
		{"a link to nothing", func(lock string) error { return os.Symlink(other+".none", lock) }, "is a link: remove it"},
		{"a pipe", func(lock string) error { return unix.Mkfifo(lock, 0o600) }, "is not a regular file: remove it"},
		{"a folder", func(lock string) error { return os.Mkdir(lock, 0o700) }, "is a directory"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := row.make(filepath.Join(dir, "lock")); err != nil {
				t.Fatal(err)
			}
			if r, err := OpenRoot(dir); err == nil {
				r.Close()
				t.Error("the root dir is taken")
			} else if !strings.Contains(err.Error(), row.says) {
				t.Errorf("it says %v, want %s", err, row.says)
			}
		})
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "precious" {
		t.Errorf("another file now holds %q, %v", b, err)
	}
	if _, err := os.Stat(other + ".none"); err == nil {
		t.Error("a file was made where a link points to")
	}
}

func TestTheHolderOfARootDirIsNamed(t *testing.T) {
	dir := t.TempDir()
	r, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(filepath.Join(dir, "lock"), 1<<40); err != nil { // nothing to be read at once
		t.Fatal(err)
	}
	pid := strconv.Itoa(os.Getpid())
	if _, err := OpenRoot(dir); err == nil || !strings.Contains(err.Error(), "(process "+pid+")") {
		t.Errorf("error %v", err)
	}
}

func TestTheProcessThatHasARootDir(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	if got := Holder(filepath.Join(dir, "none")); got != "" {
		t.Errorf("a root dir that is not there is that of process %s", got)
	}
	if err := os.WriteFile(lock, []byte("123456789012345\n"), 0o600); err != nil { // of an agent that is gone
		t.Fatal(err)
	}
	if got := Holder(dir); got != "" {
		t.Errorf("a free one is that of process %s", got)
	}
	r := openTestRoot(t, dir)
	pid := strconv.Itoa(os.Getpid())
	text, err := os.ReadFile(lock)
	if err != nil || string(text) != pid+"\n" {
		t.Errorf("the lock holds %q, %v", text, err)
	}
	if got := Holder(dir); got != pid {
		t.Errorf("it is that of process %s", got)
	}
	if err := os.Truncate(lock, 0); err != nil {
		t.Fatal(err)
	}
	if got := Holder(dir); got != "of unknown id" {
		t.Errorf("one whose lock is empty is that of process %s", got)
	}
	r.Close()
	if got := Holder(dir); got != "" {
		t.Errorf("one that was given back is that of process %s", got)
	}
}

// Who asks whose a root dir is, as `monopod doctor` does, has its lock for a moment: no agent takes that for
// another one.
func TestAQuestionKeepsNoAgentFromARootDir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		openTestRoot(t, dir).Close()
		asks, err := os.Open(filepath.Join(dir, "lock"))
		if err == nil {
			err = unix.Flock(int(asks.Fd()), unix.LOCK_SH)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(100*time.Millisecond, func() { asks.Close() })
		r, err := OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	})
}
