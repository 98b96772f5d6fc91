package update

import (
	"reflect"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		name    string
		next    *v1.Pod
		setting string
		want    string
	}{
		{"nothing is said: the setting", plain, PolicyInPlace, PolicyInPlace},
		{"nothing is said, and the setting replaces", plain, PolicyReplace, PolicyReplace},
		{"the next version says replace", annotated("replace", ""), PolicyInPlace, PolicyReplace},
		{"in the word of the setting", annotated("Replace", ""), PolicyInPlace, PolicyReplace},
		{"the next version says in place", annotated("in-place", ""), PolicyReplace, PolicyInPlace},
		{"in the word of the setting, too", annotated("InPlace", ""), PolicyReplace, PolicyInPlace},
		{"when it stops is another matter", annotated("stop-first", ""), PolicyReplace, PolicyReplace},
		{"that it is watched is another matter", annotated("in-place", "30s"), PolicyReplace, PolicyInPlace},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := PolicyOf(row.next, row.setting); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// In place, only what the containers need that restart is fetched before.
func TestWhatIsFetchedBeforeAVersionGivesWay(t *testing.T) {
	runs := pod(t)
	other := pod(t, app(func(c *v1.Container) { c.Image = "web:2" }))
	other.UID = "another"
	names := func(p *v1.Pod) (names []string) {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			names = append(names, c.Name)
		}
		return names
	}
	all := names(runs)
	for _, row := range []struct {
		name string
		runs *v1.Pod
		next *v1.Pod
		want []string
	}{
		{"no version runs", nil, pod(t), all},
		{"the next one is another pod", runs, other, all},
		{"it replaces the pod", runs, pod(t, spec(func(s *v1.PodSpec) { s.HostPID = true })), all},
		{"a container restarts", runs, pod(t, app(func(c *v1.Container) { c.Image = "web:2" })), []string{"app"}},
		{"a container is resized", runs, pod(t, app(limit("cpu", "2"))), nil},
	} {
		before := row.next.DeepCopy()
		if got := names(Fetched(row.runs, row.next)); !slices.Equal(got, row.want) || !reflect.DeepEqual(before, row.next) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}
