package logrotate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// victim is a file that nothing may be done to.
func victim(t *testing.T) (path string, untouched func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(path, []byte("root:x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, func() {
		t.Helper()
		b, err := os.ReadFile(path)
		now, _ := os.Lstat(path)
		if err != nil || string(b) != "root:x\n" || now.Mode() != before.Mode() || !now.ModTime().Equal(before.ModTime()) {
			t.Errorf("it reads %q, %v; %v", b, now, err)
		}
	}
}

func TestCompressionWritesThroughNoLink(t *testing.T) {
	on(t, func(b *bench) {
		path, untouched := victim(t)
		log := b.run("c", b.dir)
		former := log + ".20200101-000000"
		err := errors.Join(os.WriteFile(former, []byte("text\n"), 0o666), os.Symlink(path, former+partEnd), os.Symlink(path, former+zipEnd))
		if err != nil {
			t.Fatal(err)
		}
		b.start(small())
		b.write("c", 0, 20)
		after(11 * time.Second)
		untouched()
		if got := read(t, log); len(got) != 21 || got[0] != "text\n" {
			t.Errorf("%d lines: %s", len(got), files(t, filepath.Dir(log)))
		}
	})
}

func TestAFormerLogThatIsNoFileIsNotCompressed(t *testing.T) {
	for name, make := range map[string]func(former string) error{
		"a pipe": func(former string) error { return unix.Mkfifo(former, 0o666) },
		"a link": func(former string) error { return os.Symlink("/proc/self/status", former) },
	} {
		t.Run(name, func(t *testing.T) {
			on(t, func(b *bench) {
				log := b.run("c", b.dir)
				if err := make(log + ".20200101-000000"); err != nil {
					t.Fatal(err)
				}
				b.start(small())
				b.write("c", 0, 20)
				after(11 * time.Second)
				if got := files(t, filepath.Dir(log)); strings.Contains(got, zipEnd) || b.reopened != 1 {
					t.Errorf("%s, reopened %d times", got, b.reopened)
				}
				if err := compressAt(t.Context(), log+".20200101-000000"); err == nil {
					t.Error("it was compressed")
				}
			})
		})
	}
}

// A log that is no file is said once, and left alone.
func TestALogThatIsNoFileIsLeftAlone(t *testing.T) {
	path, untouched := victim(t)
	for name, make := range map[string]func(log string) error{
		"a link": func(log string) error { return os.Symlink(path, log) },
		"a pipe": func(log string) error { return unix.Mkfifo(log, 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			on(t, func(b *bench) {
				log := b.run("c", b.dir)
				if err := errors.Join(os.Remove(log), make(log)); err != nil {
					t.Fatal(err)
				}
				b.start(Config{MaxSize: 5})
				after(time.Minute)
				if got := files(t, filepath.Dir(log)); got != "0.log" || b.reopened != 0 {
					t.Errorf("%s, reopened %d times", got, b.reopened)
				}
				if n := strings.Count(b.log.String(), "log is not kept within bounds"); n != 1 {
					t.Errorf("said %d times", n)
				}
				untouched()
			})
		})
	}
}

// Folders of logs that are links are not gone through, to rotate, to remove or
// to make what is missing.
func TestFoldersThatAreLinksAreLeftAlone(t *testing.T) {
	on(t, func(b *bench) {
		outside := t.TempDir()
		log := b.run("c", outside)
		if err := os.Symlink(filepath.Join(outside, "c"), filepath.Join(b.dir, "c")); err != nil {
			t.Fatal(err)
		}
		b.at["c"], b.at["d"] = filepath.Join(b.dir, "c", "0.log"), filepath.Join(b.dir, "c", "d", "0.log")
		b.start(small())
		b.write("c", 0, 20)
		after(time.Minute)
		if err := Remove(b.at["c"]); err == nil {
			t.Error("removed")
		}
		if got := files(t, filepath.Dir(log)); got != "0.log" || b.reopened != 0 {
			t.Errorf("%s, reopened %d times", got, b.reopened)
		}
	})
}
