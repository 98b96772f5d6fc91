package logrotate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRotatesSoManyAtATime(t *testing.T) {
	for _, workers := range []int{1, 3} {
		on(t, func(b *bench) {
			b.takes = time.Second
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				b.run(id, b.dir)
				b.write(id, 0, 10)
			}
			b.start(Config{MaxSize: 1000, Workers: workers})
			after(10 * time.Second)
			if b.together != workers || b.reopened != 5 {
				t.Errorf("%d at a time, %d in all, want %d and 5", b.together, b.reopened, workers)
			}
		})
	}
}

// A round that takes longer than the interval is not overtaken by the next.
func TestAContainersLogIsRotatedOnceAtATime(t *testing.T) {
	on(t, func(b *bench) {
		b.takes = 4 * time.Second
		log := b.run("c", b.dir)
		b.write("c", 0, 10)
		b.start(Config{MaxSize: 1000, Interval: time.Second, Workers: 4})
		for n := range 20 {
			after(time.Second)
			b.write("c", 10+n*10, 10)
		}
		after(10 * time.Second)
		if b.together != 1 {
			t.Errorf("%d rotations at a time", b.together)
		}
		lines := read(t, log)
		complete(t, lines, 210-len(lines), 210)
	})
}

// An end in the middle leaves no log without its name.
func TestEndsBetweenRotations(t *testing.T) {
	on(t, func(b *bench) {
		b.takes = 3 * time.Second
		log := b.run("c", b.dir)
		b.write("c", 0, 10)
		b.start(small())
		after(time.Second)
		b.stop()
		b.write("c", 10, 1)
		complete(t, read(t, log), 0, 11)
		if former, _ := filepath.Glob(log + ".*"); len(former) != 1 || b.reopened != 1 {
			t.Errorf("%s, reopened %d times", files(t, filepath.Dir(log)), b.reopened)
		}
	})
}

// What a removed container leaves goes after its rotation, and with it.
func TestRemove(t *testing.T) {
	on(t, func(b *bench) {
		b.takes = 3 * time.Second
		log := b.run("c", b.dir)
		if err := errors.Join(os.WriteFile(log+".20260102-030405.gz", nil, 0o640), os.WriteFile(filepath.Join(b.dir, "c", "10.log"), nil, 0o640)); err != nil {
			t.Fatal(err)
		}
		b.write("c", 0, 10)
		r := b.start(small())
		after(time.Second)
		began := time.Now()
		if err := r.Remove(b.Context(), "c", log); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if got := files(t, filepath.Dir(log)); got != "10.log" {
			t.Errorf("left: %s", got)
		}
		if err := Remove(filepath.Join(b.dir, "gone", "0.log")); err != nil {
			t.Error(err)
		}
	})
}

// Names tell the order, even when the clock is set back.
func TestNextStamp(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.Local)
	for _, row := range []struct{ newest, want string }{
		{"", "20260506-070809"},
		{"20260506-070808", "20260506-070809"},
		{"20260506-070809", "20260506-070810"},
		{"20260506-080959", "20260506-081000"},
		{"20261231-235959", "20270101-000000"},
	} {
		var former []rotated
		if row.newest != "" {
			former = []rotated{{stamp: "20200101-000000"}, {stamp: row.newest}}
		}
		if got := nextStamp(now, former); got != row.want {
			t.Errorf("after %s: %s, want %s", row.newest, got, row.want)
		}
	}
}

// Others' files are neither counted nor removed.
func TestLeavesOthersFiles(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", b.dir)
		others := []string{"0.log.1", "0.log.bak.tmp", "10.log.20260102-030405.tmp", "notes"}
		for _, name := range others {
			if err := os.WriteFile(filepath.Join(b.dir, "c", name), nil, 0o640); err != nil {
				t.Fatal(err)
			}
		}
		b.start(Config{MaxSize: 1000, MaxFiles: 2})
		for n := range 5 {
			b.write("c", n*10, 10)
			after(10 * time.Second)
		}
		got := files(t, filepath.Dir(log))
		for _, name := range others {
			if !strings.Contains(got, name) {
				t.Errorf("%s is gone: %s", name, got)
			}
		}
	})
}

// A log that cannot be compressed is rotated all the same, and said.
func TestALogThatCannotBeCompressed(t *testing.T) {
	on(t, func(b *bench) {
		log := b.run("c", b.dir)
		b.start(small())
		b.write("c", 0, 10)
		after(10 * time.Second)
		former, _ := filepath.Glob(log + ".*")
		if len(former) != 1 {
			t.Fatal(files(t, filepath.Dir(log)))
		}
		if err := os.Mkdir(former[0]+".gz", 0o755); err != nil { // takes the name; see rename(2)
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(former[0]+".gz", "x"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		b.write("c", 10, 10)
		after(10 * time.Second)
		if size, err := sizeOf(log); size != 0 || err != nil || b.reopened != 2 {
			t.Errorf("%d bytes, %v, reopened %d times: %s", size, err, b.reopened, files(t, filepath.Dir(log)))
		}
		if size, err := sizeOf(former[0]); size != 1000 || err != nil || strings.Count(b.log.String(), "compress log") != 1 {
			t.Errorf("%d bytes, %v, said %s", size, err, b.log)
		}
	})
}

func TestCompressLeavesWhatItCannot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "0.log.20260102-030405")
	if err := os.WriteFile(path, []byte("text"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path+".gz", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := compressAt(t.Context(), path)
	if err == nil || !strings.HasPrefix(err.Error(), "compress log: ") {
		t.Errorf("got %v", err)
	}
	if got := files(t, dir); got != fmt.Sprintf("%[1]s %[1]s.gz", filepath.Base(path)) {
		t.Errorf("left: %s", got)
	}
}
