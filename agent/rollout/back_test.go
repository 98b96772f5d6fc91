package rollout

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/hold"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
)

var atNoon = checkpoint.Asked{At: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Why: "audit"}

// hashed is a version whose hash begins with the text.
func hashed(text, image string) *manifests.Pod {
	p := byImage(image).Pod
	p.Annotations = map[string]string{"kubernetes.io/config.hash": text + "0123456789"}
	return accepted(p, "/m/web.yaml")
}

func pastOf(all ...*manifests.Pod) (past []checkpoint.Past) {
	for _, p := range all {
		past = append(past, checkpoint.PastOf(p, map[string]string{"c": "sha256:" + p.Spec.Containers[0].Image}, time.Time{}))
	}
	return past
}

// comesBack lets a person ask for a version that was ready.
func (s *tale) comesBack(former, given, runs *manifests.Pod) {
	s.Helper()
	r := &Record{Given: given, Accepted: runs, Trial: s.trial}
	next, err := r.AskedBack("default/web-n", pastOf(former), "", atNoon, &World{})
	if err != nil {
		s.Fatal(err)
	}
	s.trial = next
}

func TestWhichVersionAPersonMeans(t *testing.T) {
	a1, a2, b, given := hashed("aa11", "img:1"), hashed("aa22", "img:2"), hashed("bb33", "img:3"), hashed("cc44", "img:4")
	back := &Trial{Former: a1, Tried: given, Reason: "it failed"}
	for _, row := range []struct {
		name  string
		past  []checkpoint.Past
		trial *Trial
		to    string
		image string // of the version; "": it is refused
		why   string
	}{
		{"the one that was ready last", pastOf(a1, a2), nil, "", "img:1", ""},
		{"the one beside that of the manifest", pastOf(given, b, a1), nil, "", "img:3", ""},
		{"the one before that which is back already", pastOf(a1, given, b), back, "", "img:3", ""},
		{"none", nil, nil, "", "", "pod default/web-n has no earlier version that was ready, as far as this agent remembers"},
		{"none but that of the manifest", pastOf(given), nil, "", "", "pod default/web-n has no earlier version that was ready, as far as this agent remembers"},
		{"by its hash", pastOf(given, b, a1), nil, "aa110123456789", "img:1", ""},
		{"by the beginning of its hash", pastOf(given, b, a1), nil, "b", "img:3", ""},
		{"an unknown one", pastOf(b, a1), nil, "dd", "", "pod default/web-n has no version dd that was ready: there are bb330123 (img:3), aa110123 (img:1)"},
		{"an unknown one, of a single one", pastOf(b), nil, "dd", "", "pod default/web-n has no version dd that was ready: there is bb330123 (img:3)"},
		{"an unknown one, of none", nil, nil, "dd", "", "pod default/web-n has no version dd that was ready: there is none"},
		{"by the beginning of two", pastOf(a1, b, a2), nil, "aa", "", "pod default/web-n has several versions that begin with aa: there are aa110123 (img:1), bb330123 (img:3), aa220123 (img:2)"},
		{"that of the manifest", pastOf(given, a1), nil, "cc", "", "version cc440123 is the one that the manifest of pod default/web-n gives: edit that to have it tried again"},
		{"the one that is back already", pastOf(a1, given), back, "aa", "", "pod default/web-n went back to version aa110123 already"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &Record{Given: given, Accepted: given, Trial: row.trial}
			next, err := r.AskedBack("default/web-n", row.past, row.to, atNoon, &World{})
			var refused *status.Refusal
			switch {
			case row.image == "" && (!errors.As(err, &refused) || err.Error() != row.why):
				t.Errorf("%v, want %s", err, row.why)
			case row.image != "" && (err != nil || next.Former.Spec.Containers[0].Image != row.image || next.Tried != given):
				t.Errorf("%+v, %v", next, err)
			}
		})
	}
}

func TestAHoldKeepsAPersonFromGoingBack(t *testing.T) {
	of := &hold.Hold{Reason: "audit"}
	for _, row := range []struct {
		r   Record
		w   World
		why string
	}{
		{Record{Hold: of}, World{}, "pod default/web-n is not rolled back: it is held: audit (`monopod release web-n` ends it)"},
		{Record{}, World{NodeHold: of}, "pod default/web-n is not rolled back: the node is held: audit (`monopod release` ends it)"},
	} {
		row.r.Key, row.r.Given, row.r.Accepted = second.Key(), second, second
		_, err := row.r.AskedBack("default/web-n", pastOf(first), "", atNoon, &row.w)
		if err == nil || err.Error() != row.why {
			t.Errorf("%v, want %s", err, row.why)
		}
	}
}

// What a person asks for counts once it is on disk, and not sooner.
func TestARequestCountsOnceItIsOnDisk(t *testing.T) {
	s := startedTrial(t)
	s.comesBack(first, second, second)
	s.chooses(second, second, "img:2")
	s.saves(os.ErrPermission)
	s.chooses(second, second, "img:2")
	s.trial, _, _ = s.trial.Look(Sight{Now: s.now.Add(time.Hour), Limits: asked, Lives: itLives})
	s.chooses(second, second, "img:2")
	s.saves()
	p := s.chooses(second, second, "sha256:img:1")
	want := "update rolled back: version " + id(second) + " (img:2): by request at 2026-05-01 12:00:00 UTC: audit; version " + id(first) + " (img:1) comes back"
	if told := s.trial.Told(p); told != want || !s.trial.Line().Final {
		t.Errorf("it is told %q, %+v", told, s.trial.Line())
	}
}

// What is back already stays until the other one is on disk: the version that failed is not tried
// in between.
func TestWhatIsBackStaysUntilARequestIsOnDisk(t *testing.T) {
	s := startedTrial(t)
	s.fails()
	runs := s.chooses(second, second, "sha256:1")
	s.comesBack(third, second, runs)
	s.chooses(second, runs, "sha256:1")
	s.saves()
	s.chooses(second, runs, "sha256:img:3")
}

func TestARequestSurvivesTheAgentAndTheMachine(t *testing.T) {
	s := startedTrial(t)
	s.comesBack(first, second, second)
	s.saves()
	for _, boot := range []string{"a boot", "another"} {
		s.restarts(boot, nil)
		p := s.chooses(second, nil, "sha256:img:1", isUnknown)
		if s.trial.Asked == nil || !strings.Contains(s.trial.Told(p), "by request at ") || s.trial.Reserves() {
			t.Errorf("%+v", s.trial)
		}
	}
}

func TestAnotherManifestEndsARequest(t *testing.T) {
	for name, edited := range map[string]*manifests.Pod{"another": third, "that of the former version": first} {
		t.Run(name, func(t *testing.T) {
			s := startedTrial(t)
			s.comesBack(first, second, second)
			s.saves()
			back := s.chooses(second, second, "sha256:img:1")
			s.offers(edited, back)
			if s.trial != nil && (s.trial.Asked != nil || s.trial.Reason != "") {
				t.Errorf("%+v", s.trial)
			}
		})
	}
}

// Who gives up an update that waits has what runs stay as it is, images as named.
func TestARequestForWhatRunsRestartsNothing(t *testing.T) {
	s := startedTrial(t)
	s.comesBack(second, third, second)
	s.saves()
	p := s.chooses(third, second, "img:2")
	if kind := update.Planned(second, p, "").Kind; kind != update.Nothing || !s.trial.IsBack(p) {
		t.Errorf("%s", kind)
	}
}

// What came back by digest is told by the version that it is.
func TestHistoryTellsOfVersionsAsTheirManifestsGaveThem(t *testing.T) {
	s := startedTrial(t)
	s.comesBack(first, second, second)
	s.saves()
	r := &Record{Given: second, Accepted: second, Trial: s.trial}
	all := r.History(pastOf(first))
	if len(all) != 2 || !all[0].Running || !all[0].Manifest || all[0].RolledBack != atNoon.String() || all[0].ReadySince != nil || !all[1].ComesBack || all[1].Running {
		t.Errorf("%+v", all)
	}
	r.Accepted = s.trial.Pinned
	all = r.History(pastOf(first, second))
	if len(all) != 2 || !all[0].Running || all[0].ComesBack || all[0].Images[0] != "img:1" || all[1].Running || !all[1].Manifest {
		t.Errorf("%+v", all)
	}
}

// What comes back by request, and has all as what runs in its place, stays as named.
func TestARequestInPlaceNamesWhatStaysAsItIs(t *testing.T) {
	for policy, want := range map[string]int{"": 1, update.PolicyReplace: 0} {
		r := &Record{Given: second, Accepted: byImage("img:1", "two")}
		next, err := r.AskedBack("default/web-n", pastOf(first), "", atNoon, &World{Policy: policy})
		if err != nil || len(next.Same) != want {
			t.Errorf("policy %q: %+v, %v", policy, next, err)
		}
	}
}
