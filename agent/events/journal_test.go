package events

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/backoff"
	"monopod/agent/message"
)

// run runs the Recorder until stop is called, which closes it too.
func run(r *Recorder) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	return func() { cancel(); <-done; r.Close() }
}

func fileLines(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

func TestEventsSurviveTheAgent(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, _ := open(dir)
		stop := run(r)
		r.Event(web, v1.EventTypeNormal, "Started", message.Private("x"))
		r.Event(web, v1.EventTypeWarning, "BackOff", message.Private("y"))
		time.Sleep(2 * gather)
		if n := fileLines(t, dir); n != 2 {
			t.Errorf("%d lines are written, want 2", n)
		}
		for range 3 {
			r.Event(web, v1.EventTypeNormal, "Started", message.Private("x"))
			time.Sleep(gather)
		}
		if n := fileLines(t, dir); n != 2 {
			t.Errorf("repetitions were written at once: %d lines", n)
		}
		time.Sleep(lazily)
		if n := fileLines(t, dir); n != 3 {
			t.Errorf("%d lines are written, want 3", n)
		}
		r.Event(web, v1.EventTypeNormal, "Killing", message.Private("the last one"))
		want := said(r, "")
		stop()

		r, log := open(dir)
		equal(t, said(r, ""), want...)
		time.Sleep(time.Second) // what the file tells apart
		r.Event(web, v1.EventTypeNormal, "Started", message.Private("x"))
		if all := said(r, ""); len(all) != 3 || all[2] != "Started x5: x" {
			t.Errorf("it is not counted on: %q", all)
		}
		r.Close()
		if log.count("level=WARN") != 0 {
			t.Errorf("said %s", log.text.String())
		}
		if fi, err := os.Stat(filepath.Join(dir, "events.jsonl")); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", fi.Mode(), err)
		}
		all, err := Read(filepath.Join(dir, "events.jsonl"))
		if err != nil || len(all) != 3 || all[2].Count != 5 {
			t.Errorf("Read = %v, %v", all, err)
		}
	})
}

// When what failed is tried again is a fact of the event, also for the next agent and who reads the
// file; the last try counts.
func TestAnEventHasTheNextTry(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, _ := open(dir)
		stop := run(r)
		next := time.Now().Add(40 * time.Second)
		pull := func(next time.Time) { r.RecordTry(web, v1.EventTypeWarning, "Failed", message.Fixed("no image"), next) }
		pull(next.Add(-time.Minute))
		r.Record(web, v1.EventTypeNormal, "Started", message.Fixed("it runs"))
		pull(next)
		check := func(when string, all []v1.Event) {
			t.Helper()
			for k := range all {
				want := time.Time{}
				if all[k].Reason == "Failed" {
					want = next
				}
				if got := NextOf(&all[k]); !got.Equal(want.Truncate(time.Second)) || len(all) != 2 {
					t.Errorf("%s: of %d events, %s is tried again at %s, want %s", when, len(all), all[k].Reason, got, want)
				}
			}
		}
		listed := func(r *Recorder) (all []v1.Event) {
			r.List("").Each(func(e *v1.Event) bool { all = append(all, *e); return true })
			return all
		}
		check("as it happens", listed(r))
		stop()
		read, err := Read(filepath.Join(dir, "events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		check("in the file", read)
		after, _ := open(dir)
		defer after.Close()
		check("for the next agent", listed(after))
	})
}

func TestATornLineIsLeftOut(t *testing.T) {
	rows := []struct{ name, add string }{
		{"half a line", `{"metadata":{"name":"web-n.1`},
		{"a whole line without its end", ""},
		{"zeros", "\x00\x00\x00\x00\n"},
		{"something else", "[]\n{}\n"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "events.jsonl")
			r, _ := open(dir)
			r.Event(web, v1.EventTypeNormal, "Started", message.Private("x"))
			r.Close()
			b, _ := os.ReadFile(path)
			if row.add == "" {
				b = b[:len(b)-1]
			}
			if err := os.WriteFile(path, append(b, row.add...), 0o600); err != nil {
				t.Fatal(err)
			}
			r, _ = open(dir)
			equal(t, said(r, ""), "Started x1: x")
			r.Event(web, v1.EventTypeNormal, "Killing", message.Private("y"))
			r.Close()
			if n := fileLines(t, dir); n != 2 {
				t.Errorf("%d lines, want 2", n)
			}
			if all, err := Read(path); err != nil || len(all) != 2 {
				t.Errorf("Read = %v, %v", all, err)
			}
		})
	}
}

func TestTheFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	r, _ := open(dir)
	largest := int64(0)
	for k := range 6000 {
		r.Event(PodRef("default", fmt.Sprint("p", k), "u"), v1.EventTypeNormal, "Started", message.Private(strings.Repeat("m", 600)))
		if k%20 == 0 {
			if err := r.flush(); err != nil {
				t.Fatal(err)
			}
			fi, err := os.Stat(r.config.Path)
			if err != nil {
				t.Fatal(err)
			}
			largest = max(largest, fi.Size())
		}
	}
	if largest < sizeMin || largest > 3<<20 {
		t.Errorf("the file had %d bytes", largest)
	}
	want := said(r, "")
	r.Close()
	r, _ = open(dir)
	equal(t, said(r, ""), want...)
	if len(want) != keepAll {
		t.Errorf("%d events", len(want))
	}
}

func TestAFileThatSomebodyTouchedIsWrittenAnew(t *testing.T) {
	rows := []struct {
		name  string
		touch func(path string) error
	}{
		{"removed", os.Remove},
		{"emptied", func(path string) error { return os.Truncate(path, 0) }},
		{"longer", func(path string) error { return os.Truncate(path, 4096) }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			r, _ := open(dir)
			r.Event(web, v1.EventTypeNormal, "Started", message.Private("x"))
			if err := r.flush(); err != nil {
				t.Fatal(err)
			}
			if err := row.touch(r.config.Path); err != nil {
				t.Fatal(err)
			}
			r.Event(web, v1.EventTypeNormal, "Killing", message.Private("y"))
			r.Close()
			if n := fileLines(t, dir); n != 2 {
				t.Errorf("%d lines, want 2", n)
			}
		})
	}
}

func TestADiskThatFailsTroublesNobody(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		status := filepath.Join(dir, "status")
		r, log := open(status) // which is not there
		stop := run(r)
		for range 300 {
			r.Event(web, v1.EventTypeNormal, "Started", message.Private("x"))
			time.Sleep(time.Second)
		}
		if n := log.count("writing events failed"); n != 1 {
			t.Errorf("said %d times", n)
		}
		if err := os.Mkdir(status, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * backoff.Most)
		if n := log.count("written again"); n != 1 || fileLines(t, status) != 1 {
			t.Errorf("said %d times; the file has %d lines", n, fileLines(t, status))
		}
		stop()
	})
}

func TestAnUnreadableFileIsSaidAndReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "events.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, log := open(dir)
	if log.count("the previous run's events cannot be read") != 1 {
		t.Errorf("said %s", log.text.String())
	}
	os.Remove(filepath.Join(dir, "events.jsonl"))
	r.Event(web, v1.EventTypeNormal, "Started", message.Private("x"))
	r.Close()
	if fileLines(t, dir) != 1 {
		t.Error("it is not written")
	}
}

func TestWatchesEndWithRun(t *testing.T) {
	r, _ := open("")
	_, w, err := r.Watch("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx)
	r.Event(web, v1.EventTypeNormal, "Started", message.Private("x"))
	if e, ok := w.Next(nil); ok {
		t.Errorf("after the end: %v", e)
	}
}

// A machine without a battery starts each boot with a clock that is behind its last events, until the
// clock is set.
func TestEventsOfABootWhoseClockIsNotSetAreKept(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(365 * 24 * time.Hour)
		r, _ := open(dir)
		stop := run(r)
		for k := range keepSubject {
			r.Event(web, v1.EventTypeNormal, fmt.Sprint("R", k), message.Private("x"))
			time.Sleep(stormInterval)
		}
		stop()
	})
	synctest.Test(t, func(t *testing.T) { // the year before
		r, log := open(dir)
		stop := run(r)
		r.Event(web, v1.EventTypeNormal, "Booted", message.Private("the power was away"))
		r.Event(web, v1.EventTypeNormal, "R99", message.Private("x"))
		all := said(r, "")
		if len(all) != keepSubject || all[0] != "R2 x1: x" || all[98] != "Booted x1: the power was away" || all[99] != "R99 x1: x" {
			t.Errorf("%d events from %s to %s", len(all), all[0], all[len(all)-1])
		}
		if log.count("R99") != 1 {
			t.Errorf("an event of the former boot counts as one of the last hour\n%s", log.text.String())
		}
		stop()
		r, _ = open(dir)
		equal(t, said(r, ""), all...)
	})
}

func TestEventsBeforeTheClockWasSetBackAreNotSimilar(t *testing.T) {
	dir := t.TempDir()
	fail := func(r *Recorder, times int) {
		for k := range times {
			r.Event(web, v1.EventTypeWarning, "Failed", message.Private(fmt.Sprint("attempt ", k)))
			time.Sleep(time.Minute)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(365 * 24 * time.Hour)
		r, _ := open(dir)
		stop := run(r)
		fail(r, 9)
		stop()
	})
	synctest.Test(t, func(t *testing.T) {
		r, _ := open(dir)
		fail(r, 1)
		if all := said(r, ""); len(all) != 10 || all[9] != "Failed x1: attempt 0" {
			t.Errorf("events are %q", all)
		}
	})
}
