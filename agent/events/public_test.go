package events

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
)

// unhealthy records what a probe of default/web-n says.
func unhealthy(r *Recorder, said string) {
	r.Record(web, v1.EventTypeWarning, "Unhealthy", message.Of("Readiness probe failed: %s", message.Private(said)))
}

// public returns what anybody may read, in short.
func public(r *Recorder) []string {
	var out []string
	r.ListPublic("").Each(func(e *v1.Event) bool {
		out = append(out, fmt.Sprintf("%s x%d: %s", e.Reason, e.Count, e.Message))
		return true
	})
	return out
}

// root returns what root reads.
func root(r *Recorder) string { return strings.Join(said(r, ""), "\n") }

func TestFilesAreNotPublic(t *testing.T) {
	r, _ := open("")
	_, w, err := r.WatchPublic("")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Record(FileRef("/m/web.yaml"), v1.EventTypeWarning, "FailedValidation", message.Fixed("it is wrong"))
	r.Record(v1.ObjectReference{Kind: "Other", Name: "x"}, v1.EventTypeNormal, "Odd", message.Fixed("it is odd"))
	r.Record(NodeRef("n"), v1.EventTypeWarning, "Rebooted", message.Fixed("the node was rebooted"))
	equal(t, public(r), "Rebooted x1: the node was rebooted")
	if e, ok := w.Next(nil); !ok || e.Reason != "Rebooted" {
		t.Errorf("the watch has %v, %v", e, ok)
	}
	if n := len(said(r, "")); n != 3 {
		t.Errorf("root sees %d events, want 3", n)
	}
}

// What somebody else says is shown to root alone, in whatever form, whether the agent
// knows a value in it or not.
func TestOnlyWordsOfTheAgentArePublic(t *testing.T) {
	for _, said := range []string{"hunter2 is refused", "aHVudGVyMg==", "68756e74657232", "HUNTER2", "hunt", "471", "x"} {
		t.Run(said, func(t *testing.T) {
			r, _ := open("")
			past, w, err := r.WatchPublic("default/web-n")
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			past.Each(func(e *v1.Event) bool { t.Errorf("before anything happened there is %v", e); return true })
			unhealthy(r, said)
			r.Event(web, v1.EventTypeNormal, "Killing", message.Private(said))
			equal(t, public(r), "Unhealthy x1: Readiness probe failed: <elided>", "Killing x1: <elided>")
			for _, want := range []string{"Readiness probe failed: <elided>", "<elided>"} {
				if e, ok := w.Next(nil); !ok || e.Message != want {
					t.Errorf("the watch has %v, %v", e, ok)
				}
			}
			if all := root(r); strings.Count(all, said) < 2 {
				t.Errorf("root does not read it: %s", all)
			}
		})
	}
}

func TestSimilarEventsStayPrivate(t *testing.T) {
	r, _ := open("")
	for k := range similarMost + 1 {
		unhealthy(r, fmt.Sprint("hunter2, attempt ", k))
	}
	all := public(r)
	if want := "Unhealthy x2: (combined from similar events): Readiness probe failed: <elided>"; all[len(all)-1] != want {
		t.Errorf("the last is %q, want %q", all[len(all)-1], want)
	}
	if text := strings.Join(all, "\n"); strings.Contains(text, "hunter2") {
		t.Error(text)
	}
}

// A long message is cut in both forms, neither of which has what the other hides.
func TestALongMessageIsCutInBothForms(t *testing.T) {
	r, _ := open("")
	r.Record(web, v1.EventTypeWarning, "Failed", message.Of("%s: %s", message.Private("fish"), message.Name(strings.Repeat("n", 2000))))
	got := public(r)[0]
	if !strings.HasPrefix(got, "Failed x1: <elided>: nnn") || !strings.HasSuffix(got, "n"+cut) || len(got) > MessageLimit+len("Failed x1: ") {
		t.Errorf("it says %q", got)
	}
}

// The next agent shows of the events in the file what this one showed, no more.
func TestAnotherAgentShowsTheSame(t *testing.T) {
	dir := t.TempDir()
	r, _ := open(dir)
	unhealthy(r, "hunter2")
	r.Record(web, v1.EventTypeNormal, "Started", message.Fixed("Container started"))
	r.Record(web, v1.EventTypeNormal, "Killing", message.Private("PreStop said hunter2"))
	r.Record(web, v1.EventTypeNormal, "Silent", message.Text{})
	want := []string{"Unhealthy x1: Readiness probe failed: <elided>", "Started x1: Container started", "Killing x1: <elided>", "Silent x1: "}
	equal(t, public(r), want...)
	for k := range 3 {
		r.Close()
		r, _ = open(dir)
		r.Record(NodeRef("n"), v1.EventTypeNormal, "Starting", message.Fixed("Starting monopod."))
		equal(t, public(r), append(want, fmt.Sprintf("Starting x%d: Starting monopod.", k+1))...)
	}
	r.Close()
	events, err := Read(filepath.Join(dir, "events.jsonl"))
	if err != nil || len(events) != 5 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, e := range events {
		if len(e.Annotations) > 0 {
			t.Errorf("a reader of the file gets its marks: %v", e.Annotations)
		}
	}
}

// A file of an agent that marked nothing may quote anybody.
func TestNothingIsShownThatWasNotMarked(t *testing.T) {
	dir := t.TempDir()
	r, _ := open(dir)
	r.Record(web, v1.EventTypeNormal, "Started", message.Fixed("Container started"))
	r.Close()
	path := filepath.Join(dir, "events.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), annPublic, "other", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ = open(dir)
	equal(t, public(r), "Started x1: <elided>")
	r.Record(web, v1.EventTypeNormal, "Started", message.Fixed("Container started"))
	equal(t, public(r), "Started x2: Container started")
}

func TestPublicEventsAreReadWhileTheyAreWritten(t *testing.T) {
	r := Open(Config{Node: "n", Log: slog.New(slog.DiscardHandler)})
	done := make(chan bool)
	go func() {
		defer close(done)
		for k := range 200 {
			unhealthy(r, fmt.Sprint("SECRET", k))
		}
	}()
	for {
		for _, text := range public(r) {
			if strings.Contains(text, "SECRET") {
				t.Error(text)
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
