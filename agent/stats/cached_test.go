package stats

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestThoseWhoAskAtOnceShareAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, made := newCached[int](), 0
		find := func(context.Context) (int, error) {
			time.Sleep(time.Second)
			made++
			return made, nil
		}
		ask := func(ctx context.Context) int {
			n, err := c.get(ctx, 2*time.Second, func(int) bool { return true }, find)
			if err != nil {
				t.Error(err)
			}
			return n
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if n := ask(t.Context()); n != 1 {
					t.Errorf("answer %d", n)
				}
			})
		}
		all.Wait()
		time.Sleep(2 * time.Second)
		if n := ask(t.Context()); n != 2 {
			t.Errorf("answer %d when the first is too old", n)
		}
	})
}

func TestWhoCannotWaitLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCached[int]()
		fits := func(int) bool { return true }
		var busy sync.WaitGroup
		busy.Go(func() {
			_, err := c.get(t.Context(), time.Second, fits, func(context.Context) (int, error) {
				time.Sleep(time.Minute)
				return 0, errors.New("no")
			})
			if err == nil {
				t.Error("an error is lost")
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.get(ctx, time.Second, fits, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		busy.Wait()
		n, err := c.get(t.Context(), time.Second, fits, func(context.Context) (int, error) { return 7, nil })
		if n != 7 || err != nil {
			t.Errorf("after an error: %d, %v", n, err)
		}
	})
}

func TestFilesAreCountedOnce(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a", string(make([]byte, 10_000)))
	alone, _, err := within(t.Context(), dir, 1)
	if err != nil || alone < 10_000 {
		t.Fatalf("%d bytes, %v", alone, err)
	}
	if err := errors.Join(os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")), os.Symlink("/", filepath.Join(dir, "c"))); err != nil {
		t.Fatal(err)
	}
	bytes, inodes, err := within(t.Context(), dir, 1)
	if bytes != alone || inodes != 3 || err != nil {
		t.Errorf("%d bytes in %d files, %v; want %d in 3", bytes, inodes, err, alone)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := within(ctx, dir, 1); err == nil {
		t.Error("who is cancelled goes on counting")
	}
}
