package events

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
)

var web = PodRef("default", "web-n", "u1")

// lines is what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// open returns a Recorder whose file is in dir; "": it has none.
func open(dir string) (*Recorder, *lines) {
	l := &lines{}
	c := Config{Node: "n", Log: slog.New(slog.NewTextHandler(l, nil))}
	if dir != "" {
		c.Path = filepath.Join(dir, "events.jsonl")
	}
	return Open(c), l
}

// said returns the events about a pod in short: "reason xcount: message".
func said(r *Recorder, pod string) []string {
	var out []string
	r.List(pod).Each(func(e *v1.Event) bool {
		out = append(out, fmt.Sprintf("%s x%d: %s", e.Reason, e.Count, e.Message))
		return true
	})
	return out
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnEventIsOneOfTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := open("")
		spec := &v1.PodSpec{InitContainers: []v1.Container{{Name: "init"}}, Containers: []v1.Container{{Name: "main"}}}
		r.Event(ContainerRef(web, spec, "init"), v1.EventTypeWarning, "BackOff", message.Private("Back-off <it>\n"))
		var got []byte
		r.List("default/web-n").Each(func(e *v1.Event) bool {
			got, _ = json.Marshal(e)
			return true
		})
		stamp := time.Now()
		at := stamp.UTC().Format(time.RFC3339)
		want := fmt.Sprintf(`{"kind":"Event","apiVersion":"v1","metadata":{"name":"web-n.%x","namespace":"default","creationTimestamp":%q},`+
			`"involvedObject":{"kind":"Pod","namespace":"default","name":"web-n","uid":"u1","apiVersion":"v1","fieldPath":"spec.initContainers{init}"},`+
			`"reason":"BackOff","message":"Back-off \u003cit\u003e","source":{"component":"monopod","host":"n"},"firstTimestamp":%q,"lastTimestamp":%q,"count":1,`+
			`"type":"Warning","eventTime":null,"reportingComponent":"monopod","reportingInstance":"n"}`, stamp.UnixNano(), at, at, at)
		if string(got) != want {
			t.Errorf("the event is\n%s\nwant\n%s", got, want)
		}
		if log.count(`level=WARN msg="Back-off <it>" pod=default/web-n container=init reason=BackOff`) != 1 {
			t.Errorf("logged %s", log.text.String())
		}
	})
}

func TestTheLikeIsCountedAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, log := open("")
		for range 40 {
			r.Event(web, v1.EventTypeWarning, "Unhealthy", message.Private("it is ill"))
			time.Sleep(10 * time.Second)
		}
		r.Event(web, v1.EventTypeNormal, "Unhealthy", message.Private("it is ill"))
		r.Record(web, v1.EventTypeNormal, "Silent", message.Private("said elsewhere"))
		r.Event(PodRef("default", "web-n", "u2"), v1.EventTypeWarning, "Unhealthy", message.Private("it is ill"))
		equal(t, said(r, "default/web-n"), "Unhealthy x40: it is ill", "Unhealthy x1: it is ill", "Silent x1: said elsewhere", "Unhealthy x1: it is ill")
		if log.count("it is ill") != 3 || log.count("elsewhere") != 0 {
			t.Errorf("logged\n%s", log.text.String())
		}
		time.Sleep(repeatWithin)
		r.Event(web, v1.EventTypeWarning, "Unhealthy", message.Private("it is ill"))
		if all := said(r, ""); len(all) != 5 || all[4] != "Unhealthy x1: it is ill" {
			t.Errorf("an hour later: %q", all)
		}
	})
}

func TestSimilarEventsAreCombined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := open("")
		var want []string
		for k := range 14 {
			r.Event(web, v1.EventTypeWarning, "Failed", message.Private(fmt.Sprint("attempt ", k)))
			time.Sleep(9 * time.Minute)
			if k < 9 {
				want = append(want, fmt.Sprintf("Failed x1: attempt %d", k))
			}
		}
		r.Event(web, v1.EventTypeWarning, "Other", message.Private("x"))
		equal(t, said(r, ""), append(want, "Failed x5: (combined from similar events): attempt 13", "Other x1: x")...)
		time.Sleep(2 * time.Minute)
		r.Event(web, v1.EventTypeWarning, "Failed", message.Private("attempt 14"))
		if all := said(r, ""); all[len(all)-1] != "Failed x1: attempt 14" {
			t.Errorf("after a long gap: %q", all)
		}
	})
}

func TestAStormIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := open("")
		storm := func(n int, kind string) {
			for k := range n {
				r.Event(web, kind, fmt.Sprint("R", k), message.Private(fmt.Sprint(kind, time.Now().UnixNano())))
			}
		}
		count := func(want int) {
			t.Helper()
			if n := len(said(r, "default/web-n")); n != want {
				t.Errorf("%d events are kept, want %d", n, want)
			}
		}
		storm(40, v1.EventTypeWarning)
		count(stormBurst)
		storm(40, v1.EventTypeNormal)
		count(2 * stormBurst)
		r.Event(PodRef("default", "other", "u3"), v1.EventTypeWarning, "R", message.Private("another pod is not concerned"))
		if len(said(r, "default/other")) != 1 {
			t.Error("another pod's event was dropped")
		}
		time.Sleep(2 * stormInterval)
		storm(10, v1.EventTypeWarning)
		count(2*stormBurst + 2)
	})
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := open("")
		for k := range 500 {
			r.Event(web, v1.EventTypeNormal, fmt.Sprint("R", k), message.Private("x"))
			time.Sleep(stormInterval)
		}
		all := said(r, "default/web-n")
		if len(all) != keepSubject || all[0] != "R400 x1: x" || all[99] != "R499 x1: x" {
			t.Errorf("%d events of a pod are kept, from %s on", len(all), all[0])
		}
		for k := range 2000 {
			r.Event(PodRef("default", fmt.Sprint("p", k), "u"), v1.EventTypeNormal, "Started", message.Private("x"))
			time.Sleep(time.Nanosecond)
		}
		n := 0
		r.List("").Each(func(e *v1.Event) bool { n++; return true })
		if n != keepAll || len(said(r, "default/p999")) != 0 || len(said(r, "default/p1000")) != 1 || len(r.memory.histories) != keepAll {
			t.Errorf("%d events are kept, of %d things", n, len(r.memory.histories))
		}
		r.Event(NodeRef("n"), v1.EventTypeNormal, "Long", message.Private(strings.Repeat("ü", 2000)))
		for _, s := range said(r, "") {
			if len(s) > MessageLimit+20 {
				t.Errorf("a message of %d bytes", len(s))
			}
		}
	})
}

func TestWatchersGetWhatWasAndWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := open("")
		r.Event(web, v1.EventTypeNormal, "Before", message.Private("x"))
		past, w, err := r.Watch("default/web-n")
		if err != nil || len(past.records) != 1 {
			t.Fatalf("Watch = %v, %v", past, err)
		}
		r.Event(NodeRef("n"), v1.EventTypeNormal, "Other", message.Private("not of this pod"))
		for range 10 { // of which the first counts, and one a second later
			r.Event(web, v1.EventTypeNormal, "After", message.Private("x"))
			time.Sleep(110 * time.Millisecond)
		}
		for _, want := range []int32{1, 11} {
			r.Event(web, v1.EventTypeNormal, "After", message.Private("x"))
			if e, ok := w.Next(nil); !ok || e.Reason != "After" || e.Count != want {
				t.Errorf("Next = %+v, %v; want count %d", e, ok, want)
			}
		}
		w.Close()
		w.Close()
		if e, ok := w.Next(nil); ok {
			t.Errorf("after Close: %v", e)
		}
	})
}

func TestSlowWatchersAreCutOff(t *testing.T) {
	r, _ := open("")
	var all []*Watch
	for range 16 {
		_, w, err := r.Watch("")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	for k := range watchBuffer + 1 {
		r.Event(PodRef("default", fmt.Sprint(k), "u"), v1.EventTypeNormal, "Started", message.Private("x"))
	}
	if _, w, err := r.Watch(""); err != nil {
		t.Errorf("after the others were cut off: %v", err)
	} else {
		w.Close()
	}
	n := 0
	for _, ok := all[0].Next(nil); ok; _, ok = all[0].Next(nil) {
		n++
	}
	if n != watchBuffer {
		t.Errorf("a slow reader got %d events, want %d", n, watchBuffer)
	}
	_, w, _ := r.Watch("")
	r.Close()
	if _, ok := w.Next(nil); ok {
		t.Error("a watch goes on after the end")
	}
	if _, _, err := r.Watch(""); err == nil {
		t.Error("a watch begins after the end")
	}
}
