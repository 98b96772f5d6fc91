package server

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A file may change twice within a tick of its file system's clock, and then
// looks the same.
func TestAFileThatIsYoungIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		path, reads := filepath.Join(dir, "f"), 0
		write := func(text string) {
			put(t, path, []byte(text))
			if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		write("one")
		k, err := newReloaded("file", slog.New(slog.DiscardHandler), func() (string, error) {
			reads++
			b, err := os.ReadFile(path)
			return string(b), err
		}, path)
		if err != nil {
			t.Fatal(err)
		}
		write("two")
		if got := k.now(); got != "two" {
			t.Errorf("it says %s", got)
		}
		time.Sleep(time.Second)
		k.now()
		before := reads
		for range 5 {
			k.now()
		}
		if reads != before {
			t.Errorf("it is read %d times though nothing changed", reads-before)
		}
	})
}

// What could not be read for want of file descriptors, or on a disk that fails for a moment, is read once it can be: a
// token that was taken back would count on until the file changes again.
func TestAFileThatCouldNotBeReadIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(dir, "f")
		var fails error
		put(t, path, []byte("one"))
		k, err := newReloaded("file", slog.New(slog.DiscardHandler), func() (string, error) {
			b, err := os.ReadFile(path)
			return string(b), errors.Join(err, fails)
		}, path)
		if err != nil {
			t.Fatal(err)
		}
		put(t, path, []byte("two, later"))
		if err := os.Chtimes(path, time.Now().Add(-time.Minute), time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
		fails = syscall.EMFILE
		if got := k.now(); got != "one" {
			t.Errorf("it says %s", got)
		}
		fails = nil
		if got := k.now(); got != "two, later" {
			t.Errorf("it says %s for good", got)
		}
	})
}
