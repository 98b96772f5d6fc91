package rollout

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/manifests"
	"monopod/manifests/annotations"
)

// ordered is a version that starts after the pod db.
func ordered(image string) *manifests.Pod {
	return version(image, func(p *v1.Pod) {
		p.Annotations = map[string]string{annotations.StartAfter: "db", annotations.StartAfterTimeout: "90s"}
	})
}

func TestWhatIsForeseenOfAPod(t *testing.T) {
	w := worldOf()
	db := manifests.Key{Namespace: "default", Name: "db"}
	kept := func(r *Record) { r.Kept = Kept{Offered: v1st, Pod: v1st} }
	for _, row := range []struct {
		name      string
		is        Record
		gives     *manifests.Pod
		runs      *manifests.Pod // that is offered then
		waits     bool           // for its turn
		prepares  bool
		isSettled bool // all else is as it was
	}{
		{"no manifest gives it", running(v1st), nil, nil, false, false, false},
		{"its manifest says the same", running(v1st), v1st, v1st, false, false, true},
		{"another version", running(v1st), v2nd, v2nd, false, false, false},
		{"a version that starts after another pod", running(v1st), ordered("two"), nil, true, false, false},
		{"another one, in place of one that was never made", changed(running(v1st), unmade), v2nd, v2nd, false, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			is := changed(row.is, kept)
			is.Given = v1st
			got := Foresee(is, row.gives, w)
			want := row.runs
			if row.waits {
				want = row.gives
			}
			if got.Gone != (row.gives == nil) || !manifests.Same(got.Offered, want) || (got.Kept.Pod != nil) != row.isSettled {
				t.Errorf("offered %v, gone %v, kept %v", got.Offered, got.Gone, got.Kept)
			}
			if row.gives == nil && got.Given != nil {
				t.Errorf("given is %v", got.Given)
			}
			if waits := got.Order.Since.Equal(w.Now.Wall); waits != row.waits || row.waits && (!slices.Equal(got.Order.After, []manifests.Key{db}) || got.Order.Timeout != 90*time.Second || got.Order.Of != got.Offered) {
				t.Errorf("its order: %+v", got.Order)
			}
			if prepares := got.Now.Prepare != nil; prepares != row.prepares {
				t.Errorf("prepares %v", got.Now.Prepare)
			}
		})
	}
	if o := w.Names.OrderOf(v1st); o.Of != nil || len(o.After) > 0 {
		t.Errorf("the order of a version without one: %+v", o)
	}
	settled := changed(running(ordered("one")), hadTurn)
	if got := Foresee(settled, ordered("one"), w); got.AwaitsTurn() {
		t.Error("the version that had its turn waits for it")
	}
	started := changed(running(v1st), func(r *Record) { r.Started = VersionOf(ordered("two")) })
	if got := Foresee(started, ordered("two"), w); got.AwaitsTurn() {
		t.Error("the version that was started waits for its turn")
	}
}

func TestWhatAForeseenVersionWaitsFor(t *testing.T) {
	waits := func(by Cause, text string) Decision {
		return Decision{Waits: []Wait{{By: by, Text: message.Name(text).Text()}}}
	}
	for _, row := range []struct {
		name string
		is   Record
		d    Decision
		want []string
	}{
		{"nothing", running(v1st), Decision{}, nil},
		{"a hold", running(v1st), waits(ByHold, "held"), []string{"held"}},
		{"what is over in a moment", running(v1st), waits(ByPreparing, "it is being prepared"), nil},
		{"a lock for which it was not looked", changed(running(v1st), unknown), waits(ByLook, "it is looked for it"), []string{"the lock of its workload, if /data/lock is there"}},
		{"a lock that is looked for", changed(running(v1st), lockIs(Held, time.Minute)), waits(ByLook, "it is looked for it"), nil},
		{"a hold, and a lock for which it was not looked", changed(running(v1st), unknown), waits(ByHold, "held"), []string{"held"}},
	} {
		if got := row.is.Foreseen(&row.d); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestTheVersionThatIsChosen(t *testing.T) {
	back := &Trial{Former: first, Images: map[string]string{"c": "sha256:1"}, Tried: second, Reason: "it failed", Safe: true, Judged: true}
	back = back.pin()
	for _, row := range []struct {
		name  string
		trial *Trial
		gives *manifests.Pod
		want  string
		tries bool
	}{
		{"the one that runs", nil, first, "img:1", false},
		{"another one, which is on trial then", nil, second, "img:2", true},
		{"one that gave way", back, second, "sha256:1", false},
	} {
		r := Record{Offered: first, Accepted: first, Trial: row.trial}
		got, trial := r.Chosen(row.gives, worldOf())
		if got.Spec.Containers[0].Image != row.want || trial.Tries(row.gives) != row.tries {
			t.Errorf("%s: %s, tried %v", row.name, got.Spec.Containers[0].Image, trial.Tries(row.gives))
		}
	}
	for name, row := range map[string]struct {
		trial *Trial
		want  bool
	}{
		"it is on trial":              {&Trial{Former: first, Tried: second}, true},
		"there is none to go back to": {&Trial{Former: first, Tried: second, Unfit: true}, false},
		"it gave way":                 {&Trial{Former: first, Tried: second, Reason: "it failed"}, false},
		"another one is on trial":     {&Trial{Former: first, Tried: third}, false},
		"the former one's is there":   {&Trial{Former: first}, false},
		"there is no trial":           {nil, false},
	} {
		if got := row.trial.Tries(second); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
