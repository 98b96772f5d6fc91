package archives

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"monopod/cri"
	"monopod/cri/critest"
)

// box is a Keeper on a runtime in memory, and an importer that gives it what archives have. The test
// reads and changes the fields while the Keeper rests: rest and mu order that with the Keeper's work.
type box struct {
	*Keeper
	mu       sync.Mutex
	runtime  *critest.Runtime
	dir      string
	imports  []string // archives, in their order
	takes    time.Duration
	fails    error
	half     bool // the import that fails leaves its images
	came     []string
	problems map[string]string
	up       bool
	rests    int
}

// inBox runs a test with a Keeper that runs.
func inBox(t *testing.T, test func(t *testing.T, b *box)) { inBoxWith(t, func(*box) {}, test) }

// inBoxWith is inBox with a Keeper that is prepared before it runs.
func inBoxWith(t *testing.T, prepare func(b *box), test func(t *testing.T, b *box)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, dir)
		prepare(b)
		ctx, end := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			b.Run(ctx)
		}()
		test(t, b)
		end()
		<-over
	})
}

func newBox(t *testing.T, dir string) *box {
	b := &box{runtime: critest.New(t), dir: filepath.Join(dir, "images"), problems: map[string]string{}, up: true}
	b.Keeper = New(Config{Dirs: []string{b.dir}, Made: b.dir, Unwatched: true, Record: filepath.Join(dir, "archives.json"), CRI: cri.New(b.runtime.Conn()),
		Up: func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.up
		},
		Importer: func(context.Context, *cri.Client) (Importer, error) { return b, nil },
		Came: func(_ context.Context, names []string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.came = append(b.came, names...)
		},
		Problem: func(path, text string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.problems[path] = text
			maps.DeleteFunc(b.problems, func(_, text string) bool { return text == "" })
		},
		Log: slog.New(slog.DiscardHandler)})
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

// Import implements Importer.
func (b *box) Import(ctx context.Context, from Source) error {
	b.mu.Lock()
	b.imports = append(b.imports, filepath.Base(from.Path))
	takes, fails, half := b.takes, b.fails, b.half
	b.mu.Unlock()
	if _, err := io.Copy(io.Discard, from.Tar); err != nil {
		return err
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	if fails == nil || half {
		for _, i := range from.Index.Images {
			b.runtime.ImportImage(i.Name, i.ID)
		}
	}
	return fails
}

// Tag implements Importer.
func (b *box) Tag(_ context.Context, id, name string) error {
	b.runtime.ImportImage(name, id)
	return nil
}

func (b *box) has(name string) bool { return slices.Contains(b.runtime.Images(), name) }

// passes lets the Keeper look several times.
func (b *box) passes() { b.rest(3 * every) }

// rest lets time pass.
func (b *box) rest(d time.Duration) {
	b.mu.Lock()
	b.rests++
	b.mu.Unlock() // what the test did comes before what the Keeper does
	time.Sleep(d)
	synctest.Wait()
}

func (b *box) state(name string) Known {
	for _, a := range b.List() {
		if filepath.Base(a.Path) == name {
			return a
		}
	}
	return Known{}
}

func TestAnArchiveIsImportedOnceWhenItAppears(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		b.passes()
		path := put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		if !b.has(app) || !slices.Equal(b.imports, []string{"app.tar"}) || !slices.Equal(b.came, []string{app}) {
			t.Fatalf("%v imported, %v came, %v", b.imports, b.came, b.problems)
		}
		if is := b.state("app.tar"); is.State != Imported || b.Given()[app] != path {
			t.Errorf("%+v, given %v", is, b.Given())
		}
	})
}

// What the runtime has already is not imported; the next agent reads no archive that was imported.
func TestWhatTheRuntimeHasIsNotImportedAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			b := newBox(t, dir)
			if len(b.record) > 0 {
				b.runtime.ImportImage(app, "sha256:of-a-pull")
			} else {
				put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
				b.runtime.ImportImage(app, idOf(arch))
			}
			b.runFor(t, time.Minute)
			if len(b.imports) > 0 || b.state("app.tar").State != Imported {
				t.Errorf("%v imported, %+v", b.imports, b.state("app.tar"))
			}
		}
	})
}

func TestAnArchiveWaitsForRoomOnTheDiskOfTheImages(t *testing.T) {
	free := uint64(1)
	inBoxWith(t, func(b *box) {
		b.runtime.SetImageDir("/images")
		b.config.Free = func(dir string) (uint64, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if dir != "/images" {
				return 0, os.ErrNotExist
			}
			return free, nil
		}
	}, func(t *testing.T, b *box) {
		path := put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		b.mu.Lock()
		text := b.problems[path]
		b.mu.Unlock()
		if len(b.imports) > 0 || !strings.Contains(text, "make room on it") || !strings.Contains(text, "free in /images") {
			t.Fatalf("imports %v, problem %q", b.imports, text)
		}
		b.mu.Lock()
		free = 1 << 30
		b.mu.Unlock()
		b.rest(10 * time.Minute)
		if !b.has(app) || b.problems[path] != "" {
			t.Errorf("with room: %v, %v", b.imports, b.problems)
		}
	})
}

func TestAnImageThatIsGoneIsImportedAgain(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		if err := b.config.CRI.RemoveImage(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		b.rest(recheck + every)
		if !b.has(app) || len(b.imports) != 2 {
			t.Errorf("imported %v", b.imports)
		}
		if err := b.config.CRI.RemoveImage(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		if waited := b.Await(t.Context(), "app:1"); !waited || !b.has(app) {
			t.Error("who misses it does not wait")
		}
	})
}

func TestWhoNeedsAnImageWaitsForItsImportAndNobodyElseDoes(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		b.takes = time.Minute
		path := put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		if got := b.Pending("app:1"); got != path {
			t.Errorf("pending in %q", got)
		}
		if b.Await(t.Context(), "other:1") {
			t.Error("it waits for another image")
		}
		before := time.Now()
		if !b.Await(t.Context(), "app:1") || !b.has(app) || time.Since(before) > time.Minute {
			t.Errorf("waited for %s", time.Since(before))
		}
	})
}

func TestTheArchiveThatAPodWaitsForIsFirst(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		b.takes = time.Minute
		for _, name := range []string{"a", "b", "c"} {
			put(t, b.dir, name+".tar", tarOf(ociOf("docker.io/library/"+name+":1", arch)))
		}
		b.passes()
		b.Await(t.Context(), "c:1")
		synctest.Wait()
		if !slices.Equal(b.imports[:2], []string{"a.tar", "c.tar"}) {
			t.Errorf("imported %v", b.imports)
		}
	})
}

func TestAFileThatIsBeingWrittenWaits(t *testing.T) {
	var f *os.File
	create := func(b *box) { // before the first look, as the next one is later than what follows
		var err error
		f, err = os.Create(filepath.Join(b.dir, "app.tar"))
		if err != nil {
			t.Fatal(err)
		}
	}
	inBoxWith(t, create, func(t *testing.T, b *box) {
		content := tarOf(ociOf(app, arch))
		for part := range slices.Chunk(content, 4096) {
			_, _ = f.Write(part)
			b.rest(noWriter / 2)
			if is := b.state("app.tar"); is.State != BeingWritten || len(b.problems) > 0 {
				t.Fatalf("%+v, %v", is, b.problems)
			}
			_ = os.Chtimes(f.Name(), time.Now(), time.Now()) // the clock of the test is another one
		}
		_ = f.Close()
		b.rest(2 * soon)
		if !b.has(app) {
			t.Errorf("%+v", b.state("app.tar"))
		}
	})
}

func TestABrokenArchiveIsAProblemWithItsPlaceUntilItIsMended(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		content := tarOf(ociOf(app, arch))
		path := put(t, b.dir, "app.tar", content[:4000])
		put(t, b.dir, "other.tar", tarOf(ociOf("docker.io/library/other:1", arch)))
		b.passes()
		if is := b.state("app.tar"); is.State != Broken || b.problems[path] != "archive of images "+path+": it ends too early: copy it again" {
			t.Errorf("%+v, %v", is, b.problems)
		}
		if !b.has("docker.io/library/other:1") {
			t.Error("another archive suffers")
		}
		put(t, b.dir, "app.tar", content)
		b.passes()
		if len(b.problems) > 0 || !b.has(app) {
			t.Errorf("mended: %v", b.problems)
		}
		put(t, b.dir, "app.tar", content[:4000])
		b.passes()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		b.passes()
		if len(b.problems) > 0 || len(b.Given()) != 1 {
			t.Errorf("removed: %v, %v", b.problems, b.Given())
		}
	})
}

func TestOfAFailedImportNothingStaysAndItIsTriedAgain(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		b.fails, b.half = errors.New("no space left on device"), true
		path := put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		if b.has(app) || !strings.Contains(b.problems[path], "no space left") || len(b.imports) < 2 {
			t.Errorf("has it: %t, %v, imports %v", b.has(app), b.problems, b.imports)
		}
		if b.Await(t.Context(), "app:1") {
			t.Error("a pod waits for an archive that cannot be imported")
		}
		b.fails = nil
		b.rest(2 * time.Minute)
		if !b.has(app) || len(b.problems) > 0 {
			t.Errorf("later: %v", b.problems)
		}
	})
}

func TestWithoutARuntimeArchivesWait(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		b.up = false
		put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		if len(b.imports) > 0 || b.state("app.tar").State != Due || len(b.problems) > 0 {
			t.Errorf("imported %v, %+v", b.imports, b.state("app.tar"))
		}
		b.up = true
		b.passes()
		if !b.has(app) {
			t.Error("it is not imported once there is one")
		}
	})
}

func TestArchivesThatOthersMayWriteAreRefused(t *testing.T) {
	path := ""
	inBoxWith(t, func(b *box) {
		path = put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		_ = os.Chmod(path, 0o666)
	}, func(t *testing.T, b *box) {
		b.passes()
		if !strings.Contains(b.problems[path], "chmod go-w "+path) || b.has(app) {
			t.Errorf("%v", b.problems)
		}
		_ = os.Chmod(b.dir, 0o777)
		b.passes()
		if !strings.Contains(b.problems[b.dir], "chmod go-w "+b.dir) {
			t.Errorf("%v", b.problems)
		}
	})
}

func TestWhoPullsAnImageLearnsThatAnArchiveHasIt(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		found, other := 0, 0
		defer b.OnFound("app:1", func() { found++ })()
		b.OnFound("app:1", func() { other++ })()
		put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		if found != 1 || other != 0 {
			t.Errorf("called %d times, and %d after it was stopped", found, other)
		}
	})
}

// A folder that cannot be read proves nothing: its images stay, and so does the record of them.
func TestAFolderThatCannotBeReadKeepsItsArchives(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		path := put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		aside := b.dir + ".aside"
		if err := errors.Join(os.Rename(b.dir, aside), os.WriteFile(b.dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		b.passes()
		if b.Given()[app] != path || !strings.Contains(b.problems[b.dir], "not a directory") {
			t.Errorf("given %v, %v", b.Given(), b.problems)
		}
		if err := errors.Join(os.Remove(b.dir), os.Mkdir(b.dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		b.passes()
		if len(b.Given()) > 0 || len(b.problems) > 0 {
			t.Errorf("in a folder without archives: given %v, %v", b.Given(), b.problems)
		}
	})
}

// What is recorded of archives that are gone goes with the next record, also if they went while no
// agent ran.
func TestArchivesThatAreGoneAreNotRecorded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"one.tar", "two.tar"} {
			b := newBox(t, dir)
			put(t, b.dir, name, tarOf(ociOf(app, arch)))
			b.runFor(t, time.Minute)
			recorded, err := loadRecord(b.config.Record)
			if _, is := recorded[filepath.Join(b.dir, name)]; err != nil || !is || len(recorded) != 1 {
				t.Errorf("recorded with %s: %v, %v", name, recorded, err)
			}
			_ = os.Remove(filepath.Join(b.dir, name))
		}
	})
}
