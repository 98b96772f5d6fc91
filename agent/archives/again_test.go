package archives

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// runsFor lets a Keeper of a folder run for a while, after the one before it.
func runsFor(t *testing.T, dir string, d time.Duration, prepare func(b *box)) *box {
	t.Helper()
	b := newBox(t, dir)
	prepare(b)
	b.runFor(t, d)
	return b
}

// runFor runs the Keeper for a time, in a bubble.
func (b *box) runFor(t *testing.T, d time.Duration) {
	ctx, end := context.WithCancel(t.Context())
	go func() {
		time.Sleep(d)
		synctest.Wait() // for a look of the same moment
		end()
	}()
	b.Run(ctx)
}

// A disk that is mounted late, or not at all, proves nothing to the next agent either.
func TestAFolderThatIsAwayAtTheStartKeepsItsArchives(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		one := runsFor(t, dir, time.Minute, func(b *box) { put(t, b.dir, "app.tar", tarOf(ociOf(app, arch))) })
		path := filepath.Join(one.dir, "app.tar")
		two := runsFor(t, dir, time.Minute, func(b *box) {
			b.config.Made = ""
			b.runtime.ImportImage(app, idOf(arch))
			if err := os.Rename(b.dir, b.dir+".unmounted"); err != nil {
				t.Fatal(err)
			}
			if b.Given()[app] != path {
				t.Errorf("before the first look: given %v", b.Given())
			}
		})
		if two.Given()[app] != path || len(two.imports) > 0 {
			t.Errorf("given %v, imports %v, problems %v", two.Given(), two.imports, two.problems)
		}
		if r, err := loadRecord(two.config.Record); err != nil || len(r) != 1 {
			t.Errorf("recorded %v, %v", r, err)
		}
		if err := os.Rename(two.dir+".unmounted", two.dir); err != nil {
			t.Fatal(err)
		}
		three := runsFor(t, dir, time.Minute, func(b *box) { b.runtime.ImportImage(app, "sha256:of-a-pull") })
		if len(three.imports) > 0 || three.state("app.tar").State != Imported {
			t.Errorf("once the folder is back: imports %v, %+v", three.imports, three.state("app.tar"))
		}
	})
}

// The folder where a disk is mounted is there without it, and empty.
func TestAFolderWhoseDiskIsNotMountedKeepsItsArchives(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		one := runsFor(t, dir, time.Minute, func(b *box) { put(t, b.dir, "app.tar", tarOf(ociOf(app, arch))) })
		path := filepath.Join(one.dir, "app.tar")
		two := runsFor(t, dir, time.Minute, func(b *box) {
			r := b.record[path]
			r.Disk = "of the disk"
			b.record[path], b.all = r, record{path: r}.entries(time.Now())
			err := errors.Join(os.Rename(path, path+".unmounted"), b.record.save(b.config.Record))
			if err != nil {
				t.Fatal(err)
			}
			b.runtime.ImportImage(app, idOf(arch))
		})
		if two.Given()[app] != path || !strings.Contains(two.problems[two.dir], "mount its disk") {
			t.Errorf("given %v, problems %v", two.Given(), two.problems)
		}
		three := runsFor(t, dir, time.Minute, func(b *box) {
			b.runtime.ImportImage(app, idOf(arch))
			if b.Given()[app] != path {
				t.Errorf("the next agent knows of %v", b.Given())
			}
			put(t, b.dir, "other.tar", tarOf(ociOf("docker.io/library/other:1", arch)))
		})
		if three.Given()[app] != "" || len(three.problems) > 0 {
			t.Errorf("once the folder has archives: given %v, problems %v", three.Given(), three.problems)
		}
	})
}

// The runtime may have lost all images, as when its folder was removed.
func TestOfTwoArchivesTheLaterOneCountsWhereTheRuntimeHasLostBoth(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		one := runsFor(t, dir, time.Minute, func(b *box) {
			put(t, b.dir, "a.tar", tarOf(ociOf(app, arch)))
			put(t, b.dir, "b.tar", tarOf(otherOf(app)))
		})
		two := runsFor(t, dir, time.Minute, func(*box) {})
		if was, now := one.idNow(t, app), two.idNow(t, app); was != now {
			t.Errorf("the name means %s, before %s: imports %v", now, was, two.imports)
		}
	})
}

// What keeps an archive from being read may pass without another version of it.
func TestAnArchiveIsReadOnceNothingElseIsWrong(t *testing.T) {
	zstd := zstandard(t, tarOf(ociOf(app, arch)))
	t.Run("the program is installed", func(t *testing.T) {
		path := os.Getenv("PATH")
		t.Setenv("PATH", t.TempDir())
		inBox(t, func(t *testing.T, b *box) {
			put(t, b.dir, "app.tar.zst", zstd)
			b.passes()
			if is := b.state("app.tar.zst"); is.Why != errNoZstd.Error() {
				t.Fatalf("%+v", is)
			}
			if err := os.Setenv("PATH", path); err != nil {
				t.Fatal(err)
			}
			b.rest(2 * time.Minute)
			if !b.has(app) || len(b.problems) > 0 {
				t.Errorf("%+v, %v", b.state("app.tar.zst"), b.problems)
			}
		})
	})
	t.Run("others may not write where its link leads any more", func(t *testing.T) {
		var open string
		inBoxWith(t, func(b *box) {
			open = b.dir + ".open"
			err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777))
			target := put(t, open, "app.tar", tarOf(ociOf(app, arch)))
			err = errors.Join(err, os.Symlink(target, filepath.Join(b.dir, "app.tar")))
			if err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, b *box) {
			b.passes()
			if is := b.state("app.tar"); is.State != Broken {
				t.Fatalf("%+v", is)
			}
			if err := os.Chmod(open, 0o700); err != nil {
				t.Fatal(err)
			}
			b.rest(2 * time.Minute)
			if !b.has(app) || len(b.problems) > 0 {
				t.Errorf("%+v, %v", b.state("app.tar"), b.problems)
			}
		})
	})
}
