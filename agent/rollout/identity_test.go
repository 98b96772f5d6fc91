package rollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"monopod/manifests"
)

func TestWhichUIDAVersionHas(t *testing.T) {
	// As manifests give uids that they do not say: they follow from the rest.
	const uid, own = types.UID("0123456789abcdef0123456789abcdef"), types.UID("fedcba9876543210fedcba9876543210")
	was, label, image := WithUID(v1st, uid), WithUID(labelled("one"), own), WithUID(v2nd, own)
	words := WithUID(v1st, own)
	words.Digest = "in other words"
	is := func(change ...func(*Record)) Record { return changed(running(was), change...) }
	endedBefore := func(r *Record) { r.Stop.Over = true }
	kept := func(r *Record) { r.Kept = Kept{Offered: label, Pod: WithUID(label, uid)} }
	for _, row := range []struct {
		name    string
		is      Record
		version *manifests.Pod
		policy  string
		want    types.UID
	}{
		{"a pod that runs keeps its uid over an edit in place", is(), label, "", uid},
		{"not if each edit replaces it", is(), label, "Replace", own},
		{"nor once it has ended", is(ended), label, "", own},
		{"one that has ended keeps it over other words for the same", is(ended), words, "", uid},
		{"what is offered under a uid of its own keeps that", is(func(r *Record) { r.Offered = label }), label, "", own},
		{"a name of which nothing was accepted has none to keep", is(fresh), label, "", own},

		{"a pod that is stopped keeps its uid over an edit in place", is(stopped), label, "", uid},
		{"so does one that is to start and waits", is(starts), label, "", uid},
		{"also in another agent", is(restarted, stopped), label, "", uid},
		{"not if each edit replaces it, stopped or not", is(stopped), label, "Replace", own},
		{"nor if it had ended before it was stopped", is(stopped, endedBefore), label, "", own},
		{"one that never ran has none to keep", is(stopped, bare), label, "", own},

		{"what was said of a version stays so", is(kept), label, "Replace", uid},
		{"while it is stopped, too", is(stopped, kept), label, "Replace", uid},
		{"of another version it says nothing", is(stopped, kept), image, "Replace", own},
	} {
		if got := Identify(&row.is, row.version, row.policy).UID; got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}
