package events

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/elide"
)

// secretPod is an instance of default/web-n with values in its env.
func secretPod(uid string, values ...string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "default", "web-n", types.UID(uid)
	c := v1.Container{Name: "c"}
	for k, value := range values {
		c.Env = append(c.Env, v1.EnvVar{Name: fmt.Sprint("V", k), Value: value})
	}
	p.Spec.Containers = []v1.Container{c}
	return p
}

func unhealthy(r *Recorder, uid, message string) {
	r.Record(PodRef("default", "web-n", uid), v1.EventTypeWarning, "Unhealthy", message)
}

// public returns what anybody may read, in short.
func public(r *Recorder) []string {
	var out []string
	r.ListPublic("").Each(func(e *v1.Event) bool {
		out = append(out, e.Reason+": "+e.Message)
		return true
	})
	return out
}

func TestFilesAreNotPublic(t *testing.T) {
	r, _ := open("")
	_, w, err := r.WatchPublic("")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Record(FileRef("/m/web.yaml"), v1.EventTypeWarning, "FailedValidation", "expected a string, got a number (90817263)")
	r.Record(v1.ObjectReference{Kind: "Other", Name: "x"}, v1.EventTypeNormal, "Odd", "nobody knows what it says")
	r.Record(NodeRef("n"), v1.EventTypeWarning, "Rebooted", "the node was rebooted")
	equal(t, public(r), "Rebooted: the node was rebooted")
	if e, ok := w.Next(nil); !ok || e.Reason != "Rebooted" {
		t.Errorf("the watch has %v, %v", e, ok)
	}
	if n := len(said(r, "")); n != 3 {
		t.Errorf("root sees %d events, want 3", n)
	}
}

func TestValuesOfEveryInstanceAreHidden(t *testing.T) {
	r, _ := open("")
	former, next := secretPod("u1", "OLDSECRET99"), secretPod("u2", "hunter2")
	r.Know([]*v1.Pod{former})
	unhealthy(r, "u1", "OLDSECRET99 is refused")
	r.Know([]*v1.Pod{next})
	unhealthy(r, "u1", "still OLDSECRET99")
	unhealthy(r, "u2", "hunter2 is not OLDSECRET99")
	r.Know(nil)
	r.Know(nil)
	unhealthy(r, "u2", "hunter2 at the end")
	equal(t, public(r), "Unhealthy: <elided> is refused", "Unhealthy: still <elided>", "Unhealthy: <elided> is not <elided>", "Unhealthy: <elided> at the end")
	equal(t, said(r, ""), "Unhealthy x1: OLDSECRET99 is refused", "Unhealthy x1: still OLDSECRET99",
		"Unhealthy x1: hunter2 is not OLDSECRET99", "Unhealthy x1: hunter2 at the end")
}

// A uid may be written in the manifest, and stay when its env changes.
func TestValuesOfOneUIDAddUp(t *testing.T) {
	r, _ := open("")
	r.Know([]*v1.Pod{secretPod("u1", "OLDSECRET99")})
	unhealthy(r, "u1", "OLDSECRET99, and hunter2 which comes later")
	r.Know([]*v1.Pod{secretPod("u1", "hunter2")})
	unhealthy(r, "u1", "OLDSECRET99, hunter2")
	equal(t, public(r), "Unhealthy: <elided>, and <elided> which comes later", "Unhealthy: <elided>, <elided>")
}

// A value stays hidden in what is said of others once its own instance is forgotten.
func TestWhatWasHiddenOnceStaysHidden(t *testing.T) {
	r, _ := open("")
	r.Know([]*v1.Pod{secretPod("u1", "OLDSECRET99")})
	r.Know([]*v1.Pod{secretPod("u2", "hunter2")})
	unhealthy(r, "u2", "OLDSECRET99, hunter2")
	for k := range 3 {
		r.Know([]*v1.Pod{secretPod(fmt.Sprint("u", 3+k), "third")})
	}
	equal(t, public(r), "Unhealthy: <elided>, <elided>")
}

func TestAnUnknownInstanceIsNotQuoted(t *testing.T) {
	r, _ := open("")
	r.Know([]*v1.Pod{secretPod("u1", "hunter2")})
	unhealthy(r, "u0", "nobody knows what is secret here")
	r.Record(PodRef("default", "web-n", "u0"), v1.EventTypeNormal, "Killing", "Stopping container c")
	unhealthy(r, "", "of no instance, with hunter2")
	r.Record(PodRef("default", "other", ""), v1.EventTypeWarning, "FailedSync", "of no instance of a pod that nobody knows")
	equal(t, public(r), "Unhealthy: <elided>", "Killing: Stopping container c", "Unhealthy: of no instance, with <elided>", "FailedSync: <elided>")
}

func TestAnotherAgentHidesTheSame(t *testing.T) {
	dir := t.TempDir()
	r, _ := open(dir)
	r.Know([]*v1.Pod{secretPod("u1", "OLDSECRET99"), secretPod("u2", "hunter2")})
	unhealthy(r, "u1", "OLDSECRET99")
	unhealthy(r, "u2", "it is hunter2")
	r.Close()
	r, _ = open(dir)
	equal(t, public(r), "Unhealthy: <elided>", "Unhealthy: <elided>")
	r.Know([]*v1.Pod{secretPod("u2", "hunter2")})
	equal(t, public(r), "Unhealthy: <elided>", "Unhealthy: it is <elided>")
	equal(t, said(r, ""), "Unhealthy x1: OLDSECRET99", "Unhealthy x1: it is hunter2")
	r.Close()
}

func TestWatchesThatArePublicHideValues(t *testing.T) {
	r, _ := open("")
	r.Know([]*v1.Pod{secretPod("u1", "hunter2")})
	unhealthy(r, "u1", "before hunter2")
	past, w, err := r.WatchPublic("default/web-n")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	past.Each(func(e *v1.Event) bool {
		if e.Message != "before <elided>" {
			t.Errorf("the past is %q", e.Message)
		}
		return true
	})
	_, root, _ := r.Watch("")
	defer root.Close()
	unhealthy(r, "u1", "after hunter2")
	if e, ok := w.Next(nil); !ok || e.Message != "after <elided>" {
		t.Errorf("the watch has %v, %v", e, ok)
	}
	if e, ok := root.Next(nil); !ok || e.Message != "after hunter2" {
		t.Errorf("root's watch has %v, %v", e, ok)
	}
}

func TestSimilarEventsHideValues(t *testing.T) {
	r, _ := open("")
	r.Know([]*v1.Pod{secretPod("u1", "hunter2")})
	for k := range similarMost + 1 {
		unhealthy(r, "u1", fmt.Sprint("hunter2, attempt ", k))
	}
	all := public(r)
	if want := "Unhealthy: (combined from similar events): <elided>, attempt 10"; all[len(all)-1] != want {
		t.Errorf("the last is %q, want %q", all[len(all)-1], want)
	}
	if text := strings.Join(all, "\n"); strings.Contains(text, "hunter2") {
		t.Error(text)
	}
}

// What a former instance had in its env is forgotten with the events about it.
func TestWhatIsKnownOfInstancesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := open("")
		for k := range 3 * keepSubject {
			uid := fmt.Sprint("u", k)
			r.Know([]*v1.Pod{secretPod(uid, "SECRET"+uid)})
			unhealthy(r, uid, "it is SECRET"+uid)
			time.Sleep(stormInterval)
		}
		if n := len(r.known[subject{"Pod", "default", "web-n"}].pods); n > keepSubject+2 {
			t.Errorf("%d instances are known", n)
		}
		for _, text := range public(r) {
			if text != "Unhealthy: it is <elided>" {
				t.Errorf("it says %q", text)
			}
		}
		for range 3 {
			r.Know([]*v1.Pod{})
			r.memory.histories, r.memory.count = map[subject]*history{}, 0
		}
		if n := len(r.known); n != 0 {
			t.Errorf("%d pods are known that nobody tells of", n)
		}
	})
}

func TestPublicEventsAreReadWhileTheyAreWritten(t *testing.T) {
	r := Open(Config{Node: "n", Log: slog.New(slog.DiscardHandler)})
	done := make(chan bool)
	go func() {
		defer close(done)
		for k := range 200 {
			r.Know([]*v1.Pod{secretPod(fmt.Sprint("u", k), fmt.Sprint("SECRET", k))})
			unhealthy(r, fmt.Sprint("u", k), fmt.Sprint("SECRET", k))
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

// The forms of a pod's values are thousands of texts: each version's are made
// once, however many ask.
func TestEachVersionHasOneSetOfValues(t *testing.T) {
	r, _ := open("")
	first, second := secretPod("u1", "OLDSECRET99"), secretPod("u1", "hunter2")
	sets := map[*elide.Values]bool{}
	for _, p := range []*v1.Pod{first, second} {
		r.Know([]*v1.Pod{p})
		for k := range 100 {
			reported := p.DeepCopy()
			reported.Status.Message = fmt.Sprint(k)
			sets[r.Secrets(reported)] = true
			r.Know([]*v1.Pod{p.DeepCopy()}) // read again, and nothing has changed
		}
	}
	if len(sets) > 3 { // the second alone, and together with the first until that is forgotten
		t.Errorf("two versions have %d sets of values", len(sets))
	}
}
