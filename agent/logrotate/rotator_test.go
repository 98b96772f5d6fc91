package logrotate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRotatesALogThatIsTooLarge(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", b.dir)
		b.start(small())
		b.write("c", 0, 9)
		after(10 * time.Second)
		if got := files(t, filepath.Dir(log)); got != "0.log" {
			t.Errorf("before it is too large: %s", got)
		}
		b.write("c", 9, 1)
		after(10 * time.Second)
		b.write("c", 10, 1)
		complete(t, read(t, log), 0, 11)
		former, _ := filepath.Glob(log + ".*")
		if size, err := sizeOf(log); len(former) != 1 || size != 100 || err != nil {
			t.Errorf("%s, the new one has %d bytes, %v", files(t, filepath.Dir(log)), size, err)
		}
	})
}

// The newest former log is not compressed, and there are never more than so many.
func TestKeepsSoManyLogs(t *testing.T) {
	for _, most := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			on(t, func(b *bench) {
				log := b.run("c", b.dir)
				b.start(Config{MaxSize: 1000, MaxFiles: most})
				for n := range 12 {
					b.write("c", n*10, 10)
					after(10 * time.Second)
					all, _ := filepath.Glob(log + "*")
					zipped, _ := filepath.Glob(log + ".*.gz")
					if want := min(n+2, most); len(all) != want || len(zipped) != want-2 {
						t.Fatalf("after %d rotations: %s", n+1, files(t, filepath.Dir(log)))
					}
				}
				complete(t, read(t, log), (12-most+1)*10, 120)
			})
		})
	}
}

func TestANegativeSizeMeansNoRotation(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", b.dir)
		b.start(Config{MaxSize: -1})
		b.write("c", 0, 100)
		after(time.Hour)
		if got := files(t, filepath.Dir(log)); got != "0.log" {
			t.Error(got)
		}
	})
}

func TestAFormerLogKeepsModeAndTime(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", b.dir)
		if err := os.Chmod(log, 0o662); err != nil {
			t.Fatal(err)
		}
		b.write("c", 0, 10)
		before, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		b.start(small())
		b.write("c", 10, 10)
		after(10 * time.Second)
		zipped, _ := filepath.Glob(log + ".*.gz")
		if len(zipped) != 1 {
			t.Fatal(files(t, filepath.Dir(log)))
		}
		now, err := os.Stat(zipped[0])
		if err != nil || now.Mode() != before.Mode() || !now.ModTime().Equal(before.ModTime()) {
			t.Errorf("%v %v, want %v %v; %v", now.Mode(), now.ModTime(), before.Mode(), before.ModTime(), err)
		}
	})
}

// A runtime that does not reopen the log goes on writing to it, so that gets its
// name back.
func TestALogThatIsNotReopened(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", b.dir)
		b.write("c", 0, 10)
		b.refuse(errors.New("not now"), false)
		b.start(small())
		b.write("c", 10, 1)
		after(time.Minute)
		if got := files(t, filepath.Dir(log)); got != "0.log" {
			t.Error(got)
		}
		complete(t, read(t, log), 0, 11)
		if n := strings.Count(b.log.String(), "not now"); n != 1 {
			t.Errorf("said %d times", n)
		}
		b.refuse(nil, false)
		after(10 * time.Second)
		b.write("c", 11, 1)
		complete(t, read(t, log), 0, 12)
		if former, _ := filepath.Glob(log + ".*"); len(former) != 1 {
			t.Error(files(t, filepath.Dir(log)))
		}
	})
}

// What a runtime writes to after it did reopen the log, although its answer was
// lost, is not replaced by the former one.
func TestALogThatIsReopenedWithoutAnAnswer(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", b.dir)
		b.write("c", 0, 10)
		b.refuse(errors.New("no answer"), true)
		b.start(small())
		b.write("c", 10, 1)
		after(time.Minute)
		complete(t, read(t, log), 0, 11)
	})
}

// conmon puts a new log in the place of the former one however late it is, so that has
// another name until then.
func TestALogThatIsReopenedLate(t *testing.T) {
	for name, refuses := range map[string]error{"after the agent waits no more": nil, "after the runtime is lost": fmt.Errorf("%w: connection refused", ErrUnanswered)} {
		t.Run(name, func(t *testing.T) {
			on(t, func(b *bench) {
				b.conmon, b.takes, b.refuses = true, reopenIn+2*time.Second, refuses
				log := b.run("c", b.dir)
				b.write("c", 0, 10)
				b.start(small())
				after(reopenIn + time.Second)
				b.write("c", 10, 1)
				if _, err := os.Stat(log); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("before it is reopened: %s, %v", files(t, filepath.Dir(log)), err)
				}
				after(10 * time.Second)
				b.write("c", 11, 1)
				complete(t, read(t, log), 0, 12)
				if b.reopened != 1 || !strings.Contains(b.log.String(), "until the runtime reopens it") {
					t.Errorf("reopened %d times, said %s", b.reopened, b.log)
				}
			})
		})
	}
}

// An agent can be killed at any point; the next one does what is left to do.
func TestGoesOnWhereAKilledOneWas(t *testing.T) {
	const stamp = ".20260102-030405"
	for _, row := range []struct {
		name   string
		leave  func(b *bench, log string) error
		lines  int    // that must be there
		former string // files, after the log's name
		opens  int
	}{
		{"before it renamed", func(b *bench, log string) error { return nil }, 5, "", 0},
		{"after it renamed", func(b *bench, log string) error { return os.Rename(log, log+stamp) }, 5, stamp, 1},
		{"while it compressed", func(b *bench, log string) error {
			return errors.Join(os.WriteFile(log+stamp, nil, 0o640), os.WriteFile(log+stamp+".tmp", []byte("half"), 0o640))
		}, 5, stamp, 0},
		{"after it compressed", func(b *bench, log string) error {
			b.write("c", 5, 1)
			return errors.Join(os.Rename(log, log+stamp), compressAt(b.Context(), log+stamp),
				os.WriteFile(log+stamp, []byte("again"), 0o640), b.Reopen(b.Context(), "c"))
		}, 6, stamp + ".gz", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			on(t, func(b *bench) {
				log := b.run("c", b.dir)
				b.write("c", 0, 5)
				if err := row.leave(b, log); err != nil {
					t.Fatal(err)
				}
				b.start(small())
				if b.reopened != row.opens {
					t.Errorf("reopened %d times, want %d", b.reopened, row.opens)
				}
				want := "0.log"
				if row.former != "" {
					want += " 0.log" + row.former
				}
				if got := files(t, filepath.Dir(log)); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				b.write("c", row.lines, 1)
				complete(t, read(t, log), 0, row.lines+1)
			})
		})
	}
}

func TestALogThatSomebodyRemoved(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", filepath.Join(b.dir, "pod"))
		b.start(small())
		if err := os.RemoveAll(filepath.Join(b.dir, "pod")); err != nil {
			t.Fatal(err)
		}
		after(10 * time.Second)
		b.write("c", 0, 1)
		complete(t, read(t, log), 0, 1)

		b.refuse(errors.New("it has just ended"), false)
		if err := os.RemoveAll(filepath.Join(b.dir, "pod")); err != nil {
			t.Fatal(err)
		}
		after(10 * time.Second)
		if left := files(t, b.dir); left != "" {
			t.Errorf("made for a container that went: %s", left)
		}
	})
}

func TestALogThatIsElsewhere(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", b.dir)
		b.writers.said["c"] = filepath.Join(b.dir, "other", "0.log")
		b.write("c", 0, 10)
		b.start(small())
		after(10 * time.Second)
		b.write("c", 10, 1)
		if former, _ := filepath.Glob(log + ".*"); len(former) != 1 || b.reopened != 1 {
			t.Errorf("%s, reopened %d times", files(t, filepath.Dir(log)), b.reopened)
		}
		complete(t, read(t, log), 0, 11)
	})
}

func TestAContainerThatHasEnded(t *testing.T) {
	on(t, func(b *bench) {
		b.writers.said["c"] = filepath.Join(b.dir, "c", "0.log")
		b.at["c"] = ""
		b.start(small())
		after(time.Minute)
		if b.reopened != 0 || b.log.String() != "" || files(t, b.dir) != "" {
			t.Errorf("reopened %d times, said %q, made %s", b.reopened, b.log, files(t, b.dir))
		}
	})
}
