package podlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"monopod/agent/logrotate"
)

// container writes numbered lines as a runtime does, into a folder.
type container struct {
	t       *testing.T
	dir     string
	attempt int
	next    int // number of the next line
	out     atomic.Pointer[os.File]
	opened  atomic.Int64 // how often
}

func newContainer(t *testing.T, dir string) *container {
	c := &container{t: t, dir: dir}
	t.Cleanup(func() { c.out.Load().Close() })
	return c
}

func (c *container) log() string { return filepath.Join(c.dir, fmt.Sprintf("%d.log", c.attempt)) }

// start begins an attempt.
func (c *container) start(attempt int) {
	c.attempt = attempt
	if err := errors.Join(os.MkdirAll(c.dir, 0o755), c.Reopen(context.Background(), "")); err != nil {
		c.t.Error(err)
	}
}

// write writes lines, each now and then in two parts.
func (c *container) write(lines int) {
	for range lines {
		text, f := fmt.Sprintf("line %d", c.next), c.out.Load()
		entry := entryOf(c.next, Stdout, "F", text)
		if c.next%7 == 0 {
			if _, err := f.WriteString(entryOf(c.next, Stdout, "P", text[:3])); err != nil {
				c.t.Error(err)
			}
			entry, f = entryOf(c.next, Stdout, "F", text[3:]), c.out.Load()
		}
		if _, err := f.WriteString(entry); err != nil {
			c.t.Error(err)
		}
		c.next++
	}
}

// The container is a runtime for a Rotator.
func (c *container) Running(context.Context) ([]logrotate.Container, error) {
	return []logrotate.Container{{ID: "c", Log: c.log()}}, nil
}
func (c *container) Log(context.Context, string) (string, error) { return c.log(), nil }

func (c *container) Reopen(context.Context, string) error {
	f, err := os.OpenFile(c.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	c.opened.Add(1)
	if old := c.out.Swap(f); old != nil {
		c.t.Cleanup(func() { old.Close() }) // a line may still be on its way
	}
	return nil
}

// rotate renames the log, as a Rotator does, and has it reopened.
func (c *container) rotate(stamp int) {
	if err := errors.Join(os.Rename(c.log(), fmt.Sprintf("%s.20260504-12%02d00", c.log(), stamp)), c.Reopen(context.Background(), "")); err != nil {
		c.t.Error(err)
	}
}

// follower follows a container and checks that the lines come one after the other.
type follower struct {
	t     *testing.T
	next  atomic.Int64
	ended chan struct{}
	idle  chan struct{} // gets one when all that there is was read
	block chan struct{} // while not nil, reading a line waits for it
	err   chan error
}

func follow(t *testing.T, dir string, o Options) *follower {
	f := &follower{t: t, ended: make(chan struct{}), idle: make(chan struct{}, 1), err: make(chan error, 1)}
	f.run(dir, o)
	return f
}

func (f *follower) run(dir string, o Options) {
	o.Follow, o.Ended, o.Idle = true, f.ended, func() error {
		select {
		case f.idle <- struct{}{}:
		default:
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	f.t.Cleanup(cancel)
	go func() { f.err <- Read(ctx, dir, o, f.take) }()
}

func (f *follower) take(l Line) error {
	if f.block != nil {
		<-f.block
	}
	if want := fmt.Sprintf("line %d", f.next.Load()); string(l.Text) != want || l.Partial || l.Continued {
		return fmt.Errorf("got %q of attempt %d (%v, %v), want %q", l.Text, l.Attempt, l.Partial, l.Continued, want)
	}
	f.next.Add(1)
	return nil
}

// until waits until so many lines were read.
func (f *follower) until(lines int) {
	f.t.Helper()
	for f.next.Load() < int64(lines) {
		select {
		case <-f.idle:
		case err := <-f.err:
			f.t.Fatalf("after %d of %d lines: %v", f.next.Load(), lines, err)
		}
	}
}

// end ends the container, and returns how following ended.
func (f *follower) end(lines int) {
	f.t.Helper()
	close(f.ended)
	if err := <-f.err; err != nil || f.next.Load() != int64(lines) {
		f.t.Errorf("after %d of %d lines: %v", f.next.Load(), lines, err)
	}
}

// A Rotator sets files aside, compresses and removes them as fast as it can,
// while the container writes and is restarted now and then.
func TestFollowsThroughRotations(t *testing.T) {
	const rotations, ahead = 50, 300 // lines: about four files
	c := newContainer(t, filepath.Join(t.TempDir(), "pod", "c"))
	f := follow(t, c.dir, Options{})
	c.start(0)
	ctx, cancel := context.WithCancel(t.Context())
	var rotator sync.WaitGroup
	stop := func() { cancel(); rotator.Wait() }
	rotate := func() {
		ctx, cancel = context.WithCancel(t.Context())
		r := logrotate.New(logrotate.Config{MaxSize: 4 << 10, MaxFiles: 10, Interval: time.Millisecond}, c, slog.New(slog.DiscardHandler))
		rotator.Go(func() { r.Run(ctx) })
	}
	rotate()
	for attempt := 0; c.opened.Load() < rotations+int64(attempt)+1; {
		c.write(1)
		f.until(c.next - ahead)
		if c.next%1500 == 0 && attempt < 3 {
			stop()
			attempt++
			c.start(attempt)
			rotate()
		}
	}
	stop()
	f.end(c.next)
	t.Logf("%d lines in %d files", c.next, c.opened.Load())
}

// Whoever reads slowly comes to files that were set aside, compressed, or
// removed meanwhile, and to later attempts.
func TestFollowsSlowly(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(c *container)
		lost bool
	}{
		{"set aside", func(c *container) { c.rotate(1); c.write(5) }, false},
		{"set aside twice", func(c *container) { c.rotate(1); c.write(5); c.rotate(2); c.write(5) }, false},
		{"set aside, and the next one is empty", func(c *container) { c.rotate(1) }, false},
		{"compressed", func(c *container) { c.rotate(1); c.write(5); squeeze(c, 1); c.rotate(2); c.write(5) }, false},
		{"all compressed", func(c *container) {
			c.rotate(1)
			c.write(5)
			squeeze(c, 1)
			c.rotate(2)
			squeeze(c, 2)
			c.write(5)
		}, false},
		{"removed while it is open", func(c *container) { c.rotate(1); c.write(5); drop(c, 1) }, false},
		{"removed while it is open, and the next one compressed", func(c *container) {
			c.rotate(1)
			c.write(5)
			c.rotate(2)
			drop(c, 1)
			squeeze(c, 2)
			c.write(5)
		}, false},
		{"removed with the next one", func(c *container) {
			c.rotate(1)
			c.write(5)
			c.rotate(2)
			c.write(5)
			drop(c, 1)
			drop(c, 2)
		}, true},
		{"restarted", func(c *container) { c.start(1); c.write(5); c.start(2); c.write(5) }, false},
		{"set aside and restarted", func(c *container) {
			c.rotate(1)
			c.write(5)
			c.start(1)
			c.write(5)
			c.rotate(2)
			c.write(5)
		}, false},
		{"restarted and removed", func(c *container) { c.start(1); c.write(5); os.Remove(c.dir + "/0.log") }, false},
		{"set aside and not", func(c *container) {
			os.Rename(c.log(), c.log()+".20260504-120100")
			os.Rename(c.log()+".20260504-120100", c.log())
			c.write(5)
		}, false},
		{"the folder is removed", func(c *container) { os.RemoveAll(c.dir) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newContainer(t, t.TempDir())
			c.start(0)
			c.write(5)
			f := &follower{t: t, ended: make(chan struct{}), idle: make(chan struct{}, 1), block: make(chan struct{}), err: make(chan error, 1)}
			f.run(c.dir, Options{})
			f.block <- struct{}{}
			row.do(c)
			close(f.block)
			close(f.ended)
			err := <-f.err
			if whole := err == nil && f.next.Load() == int64(c.next); whole == row.lost {
				t.Errorf("after %d of %d lines: %v", f.next.Load(), c.next, err)
			}
		})
	}
}

func squeeze(c *container, stamp int) {
	path := fmt.Sprintf("%s.20260504-12%02d00", c.log(), stamp)
	b, err := os.ReadFile(path)
	if err != nil {
		c.t.Error(err)
	}
	i, _ := os.Stat(path)
	put(c.t, path+".gz", string(b))
	if err := errors.Join(os.Chtimes(path+".gz", i.ModTime(), i.ModTime()), os.Remove(path)); err != nil {
		c.t.Error(err)
	}
}

func drop(c *container, stamp int) {
	os.Remove(fmt.Sprintf("%s.20260504-12%02d00", c.log(), stamp))
}

// While the runtime reopens the log, lines still come to the former one.
func TestWaitsForTheRuntimeToLeaveAFile(t *testing.T) {
	c := newContainer(t, t.TempDir())
	c.start(0)
	c.write(5)
	f := follow(t, c.dir, Options{})
	f.until(5)
	old := c.out.Load()
	<-f.idle
	c.rotate(1)
	<-f.idle // the new one was seen
	if _, err := old.WriteString(entryOf(5, Stdout, "F", "line 5")); err != nil {
		t.Fatal(err)
	}
	c.next = 6
	c.write(1)
	f.until(7)
	f.end(7)
}

func TestARotationThatIsTakenBack(t *testing.T) {
	c := newContainer(t, t.TempDir())
	c.start(0)
	c.write(5)
	f := follow(t, c.dir, Options{})
	f.until(5)
	<-f.idle
	for range 2 {
		aside := c.log() + ".20260504-120100"
		if err := os.Rename(c.log(), aside); err != nil {
			t.Fatal(err)
		}
		<-f.idle
		if err := os.Rename(aside, c.log()); err != nil {
			t.Fatal(err)
		}
		<-f.idle
		c.write(5)
		f.until(c.next)
	}
	c.rotate(2)
	c.write(5)
	f.until(c.next)
	f.end(c.next)
}

// A prompt is shown although its line has not ended.
func TestShowsALineThatDoesNotEnd(t *testing.T) {
	dir := folder(t, map[string]string{"0.log": script(0, "O:name:")})
	got, stop := make(chan string, 9), errors.New("stop")
	go func() {
		got <- fmt.Sprint(Read(t.Context(), dir, Options{Follow: true}, func(l Line) error {
			got <- fmt.Sprintf("%s %v %v", l.Text, l.Continued, l.Partial)
			if !l.Partial {
				return stop
			}
			put(t, dir+"/0.log", script(0, "O:name: o:x"))
			return nil
		}))
	}()
	if a, b, c := <-got, <-got, <-got; a != "name: false true" || b != "x true false" || c != "stop" {
		t.Errorf("got %q, %q, %q", a, b, c)
	}
}

func TestAFileThatIsCut(t *testing.T) {
	dir := folder(t, map[string]string{"0.log": script(0, "o:a o:b")})
	var got string
	err := Read(t.Context(), dir, Options{Follow: true}, func(l Line) error {
		got += string(l.Text)
		switch got {
		case "ab":
			put(t, dir+"/0.log", script(2, "o:c"))
		case "abc":
			return fs.ErrClosed
		}
		return nil
	})
	if got != "abc" || err != fs.ErrClosed {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	err := Read(ctx, folder(t, map[string]string{"0.log": script(0, "o:a")}), Options{Follow: true, Idle: func() error { cancel(why); return nil }}, func(Line) error { return nil })
	if err != why {
		t.Errorf("ended with %v", err)
	}
}
