package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/rollout"
	"monopod/manifests"
)

// recordsOf returns records with an agenda, and with an offered pod for each name, read in
// this order.
func recordsOf(names ...string) (s *records, key func(name string) manifests.Key) {
	s = &records{agenda: newAgenda()}
	key = func(name string) manifests.Key { return manifests.Key{Namespace: "d", Name: name} }
	var pods []*manifests.Pod
	for k, name := range names {
		seen := time.Date(2026, 1, 1, 0, 0, k, 0, time.UTC).Format(time.RFC3339)
		pods = append(pods, &manifests.Pod{Digest: name, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "d", Name: name, Annotations: map[string]string{"kubernetes.io/config.seen": seen}}}})
	}
	s.offer(pods)
	return s, key
}

func taken(s *records) string {
	var names []string
	for _, r := range s.takeDirty() {
		names = append(names, r.Key.Name)
	}
	return strings.Join(names, " ")
}

func TestDirtyNamesAreTakenOnceInOrderOfArrivalAfterThoseThatGo(t *testing.T) {
	s, key := recordsOf("zoo", "web", "api")
	for _, name := range []string{"api", "gone", "zoo", "web", "api"} {
		s.mark(key(name))
	}
	if got := taken(s); got != "gone zoo web api" {
		t.Errorf("taken: %s", got)
	}
	if got := taken(s); got != "" {
		t.Errorf("and then: %s", got)
	}
	s.mark(key("web"))
	if got := taken(s); got != "web" {
		t.Errorf("marked again: %s", got)
	}
}

func TestATimedNameIsDirtyWhenItsTimeHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, key := recordsOf("web", "api", "db")
		again := func(name string, in time.Duration) {
			d := rollout.Decision{}
			if in > 0 {
				d.Again = time.Now().Add(in)
			}
			s.decided(s.of(key(name)), d)
			s.arm(time.Now())
		}
		// next waits for the timer, and says after how long it has fired for whom.
		next := func() string {
			was := time.Now()
			select {
			case now := <-s.agenda.timer.C:
				s.due(now)
				s.arm(now)
				return strings.TrimSpace(now.Sub(was).String() + " " + taken(s))
			case <-time.After(time.Hour):
				return "never"
			}
		}
		want := func(want string) {
			t.Helper()
			if got := next(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		want("never")
		again("web", 90*time.Second)
		again("api", 10*time.Second)
		want("10s api")
		again("api", 0)
		want("1m0s") // no later, as the wall clock may be set
		want("20s web")
		again("web", 5*time.Second)
		again("web", 50*time.Second)
		want("50s web")
		again("web", 0)
		want("never")
		again("stray", time.Second)
		s.tidy()
		want("1s stray")
		again("stray", 0)
		s.tidy()
		if len(s.all) != 3 {
			t.Errorf("%d records", len(s.all))
		}
		if n := len(s.agenda.timed); n != 0 {
			t.Errorf("%d names are timed", n)
		}
	})
}
