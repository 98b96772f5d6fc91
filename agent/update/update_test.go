package update

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/image"
	"monopod/manifests"
)

func TestTheAnnotationWinsOverTheSetting(t *testing.T) {
	for _, row := range []struct {
		annotation, setting string
		first               bool
	}{
		{"", Prepare, false}, {"", StopFirst, true}, {"", "", false},
		{"stop-first", Prepare, true}, {"prepare", StopFirst, false}, {"nonsense", StopFirst, true},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"monopod.update": row.annotation}}}
		if got := StopsFirst(p, row.setting); got != row.first {
			t.Errorf("%q and %q: stops first: %v", row.annotation, row.setting, got)
		}
	}
}

func TestThePolicyIsThatOfTheNextVersionElseOfTheSetting(t *testing.T) {
	annotated := func(word, health string) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		if word != "" {
			p.Annotations["monopod.update"] = word
		}
		if health != "" {
			p.Annotations["monopod.update-health"] = health
		}
		return p
	}
	plain := annotated("", "")
	for _, row := range []struct {
		name           string
		accepted, next *v1.Pod
		setting        string
		want           string
	}{
		{"nothing is said: the setting", plain, plain, PolicyInPlace, PolicyInPlace},
		{"nothing is said, and the setting replaces", plain, plain, PolicyReplace, PolicyReplace},
		{"the next version says replace", plain, annotated("replace", ""), PolicyInPlace, PolicyReplace},
		{"in the word of the setting", plain, annotated("Replace", ""), PolicyInPlace, PolicyReplace},
		{"the next version says in place", plain, annotated("in-place", ""), PolicyReplace, PolicyInPlace},
		{"in the word of the setting, too", plain, annotated("InPlace", ""), PolicyReplace, PolicyInPlace},
		{"what the former version says does not count", annotated("replace", ""), plain, PolicyInPlace, PolicyInPlace},
		{"when it stops is another matter", plain, annotated("stop-first", ""), PolicyReplace, PolicyReplace},
		{"one that is watched is replaced all the same", plain, annotated("in-place", "30s"), PolicyInPlace, PolicyReplace},
		{"and so is the one after it", annotated("", "30s"), annotated("in-place", ""), PolicyInPlace, PolicyReplace},
		{"or where all updates are watched", plain, annotated("in-place", ""), PolicyWatched, PolicyReplace},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := PolicyOf(row.accepted, row.next, row.setting); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestWaitsAreSaidInWordsAndToldOnce(t *testing.T) {
	pulling := &Lack{Image: "img:9"}
	failed := &Lack{"img:9", &image.Error{Reason: image.ErrImagePull, Image: "img:9", Err: errors.New("no route to host")}}
	rows := []struct {
		name             string
		images           *Lack
		missing, refused string
		ready, tells     bool
		line             string
	}{
		{"nothing is lacking", nil, "", "", true, false, ""},
		{"a pull runs", pulling, "", "", false, false, `update waits: image "img:9" is being pulled`},
		{"a pull failed", failed, "", "", false, true, `update waits: image "img:9": ErrImagePull: no route to host`},
		{"another error", &Lack{"img:9", errors.New("no runtime")}, "", "", false, true, `update waits: image "img:9": no runtime`},
		{"an object is missing", nil, "there is no Secret a", "", false, true, "update waits: there is no Secret a"},
		{"no place, which is told elsewhere", nil, "", "no cpu", true, false, "update waits: no cpu"},
		{"all of it", failed, "there is no Secret a", "no cpu", false, false,
			`update waits: image "img:9": ErrImagePull: no route to host; there is no Secret a; no cpu`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := Wait{Next: &manifests.Pod{}}
			w.Look(row.images, row.missing, row.refused)
			if w.Ready != row.ready || w.Line() != row.line {
				t.Errorf("ready: %v, %q", w.Ready, w.Line())
			}
			if w.Tell() != row.tells || w.Tell() {
				t.Errorf("it is not told once: %v", row.tells)
			}
		})
	}
}
