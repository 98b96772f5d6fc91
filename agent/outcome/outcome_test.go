package outcome

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// said is what a file and its versions came to, a line each.
func said(state status.State, all []status.Version) string {
	lines := []string{string(state)}
	for _, v := range all {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s hash=%s run=%s wait=%s by=%s %d:%d %s",
			v.Pod, v.State, v.Hash, v.Running, v.Waiting, v.By, v.Line, v.Column, v.Reason), " "))
	}
	return strings.Join(lines, "\n")
}

func TestEachPodOfAFileSaysWhatBecameOfIt(t *testing.T) {
	given := func(file, name, hash string) *manifests.Pod {
		return &manifests.Pod{File: file, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(hash)}}}
	}
	refused := func(hash, reason string, final bool) Refusal { return Refusal{given("", "a", hash), reason, final} }
	wrong := func(pod string, line int, message string) status.Problem {
		return status.Problem{File: "/m/a", Line: line, Column: 2, Pod: pod, Message: message}
	}
	warning := wrong("d/a", 1, "old")
	warning.Warning, warning.Field = true, "spec.x"
	field := wrong("d/a", 3, "unknown field")
	field.Field = "spec.x"
	hashes := map[string]poduid.ContentHash{"d/a": "1"}
	inPlace := given("/m/a", "a", "0")
	inPlace.Annotations = map[string]string{poduid.AnnotationHash: "1"}
	object := wrong("", 8, "odd")
	object.Object = "ConfigMap d/x"
	rows := []struct {
		what    string
		file    manifests.File
		given   *manifests.Pod
		refused Refusal
		want    string
	}{
		{"accepted", manifests.File{Hashes: hashes, Problems: []status.Problem{warning}}, given("/m/a", "a", "1"), Refusal{},
			"accepted\nd/a accepted hash=1 run= wait= by= 0:0"},
		{"an accepted one beside a wrong one", manifests.File{Hashes: hashes, Problems: []status.Problem{wrong("d/b", 7, "no")}}, given("/m/a", "a", "1"), Refusal{},
			"accepted\nd/a accepted hash=1 run= wait= by= 0:0\nd/b rejected hash= run= wait= by= 7:2 no"},
		{"refused at a field, its last version runs", manifests.File{Pods: []string{"d/a"}, Problems: []status.Problem{warning, field, wrong("d/a", 9, "more")}}, given("/m/a", "a", "0"), Refusal{},
			"accepted\nd/a rejected hash= run= wait= by= 3:2 spec.x: unknown field"},
		{"no YAML, the last version runs", manifests.File{Pods: []string{"d/a"}, Problems: []status.Problem{wrong("", 4, "no YAML")}}, given("/m/a", "a", "0"), Refusal{},
			"rejected\nd/a rejected hash= run= wait= by= 4:2 no YAML"},
		{"given by another file", manifests.File{Hashes: hashes, Problems: []status.Problem{wrong("d/a", 5, "b gives it")}}, given("/m/b", "a", "0"), Refusal{},
			"accepted\nd/a superseded hash=1 run= wait= by=/m/b 5:2 b gives it"},
		{"with the uid of another pod", manifests.File{Hashes: hashes, Problems: []status.Problem{wrong("d/a", 5, "uid taken")}}, nil, Refusal{},
			"accepted\nd/a rejected hash=1 run= wait= by= 5:2 uid taken"},
		{"forgotten", manifests.File{Hashes: hashes, Forgotten: []string{"d/a"}, Problems: []status.Problem{wrong("", 0, "no network")}}, nil, Refusal{},
			"rejected\nd/a rejected hash=1 run= wait= by= 0:0 it was forgotten by hand, and no answer has given it since"},
		{"changed in place", manifests.File{Hashes: hashes}, inPlace, Refusal{},
			"accepted\nd/a accepted hash=1 run= wait= by= 0:0"},
		{"not there, for a reason that is not known", manifests.File{Hashes: hashes}, nil, Refusal{},
			"accepted\nd/a waiting hash=1 run= wait=1 by= 0:0"},
		{"another version is there, for a reason that is not known", manifests.File{Hashes: hashes}, given("/m/a", "a", "0"), Refusal{},
			"accepted\nd/a waiting hash=1 run= wait=1 by= 0:0"},
		{"given by a file that is gone", manifests.File{Hashes: hashes}, given("/m/gone", "a", "0"), Refusal{},
			"accepted\nd/a waiting hash=1 run= wait=1 by= 0:0 /m/gone gave it before: it waits until it is certain that this file is gone"},
		{"given by another file, beside an error of another pod", manifests.File{Hashes: hashes, Problems: []status.Problem{wrong("d/b", 5, "no")}}, given("/m/b", "a", "0"), Refusal{},
			"accepted\nd/a superseded hash=1 run= wait= by=/m/b 0:0\nd/b rejected hash= run= wait= by= 5:2 no"},
		{"not in its file any more", manifests.File{Pods: []string{"d/a"}}, given("/m/a", "a", "0"), Refusal{},
			"accepted\nd/a waiting hash= run= wait= by= 0:0 the file does not give it now: its last version is kept until it is certain that it is gone"},
		{"not in its file, which has an error", manifests.File{Pods: []string{"d/a"}, Problems: []status.Problem{object}}, given("/m/a", "a", "0"), Refusal{},
			"accepted\nd/a rejected hash= run= wait= by= 8:2 it is not in the file, and an error there may be why: odd"},
		{"not admitted", manifests.File{Hashes: hashes}, given("/m/a", "a", "1"), refused("1", "no cpu", false),
			"accepted\nd/a waiting hash=1 run= wait=1 by= 0:0 no cpu"},
		{"not admitted for good", manifests.File{Hashes: hashes}, given("/m/a", "a", "1"), refused("1", "windows", true),
			"accepted\nd/a rejected hash=1 run= wait= by= 0:0 windows"},
		{"an earlier version was not admitted", manifests.File{Hashes: hashes}, given("/m/a", "a", "1"), refused("0", "no cpu", false),
			"accepted\nd/a accepted hash=1 run= wait= by= 0:0"},
	}
	for _, r := range rows {
		r.file.Path, r.file.SHA256 = "/m/a", "x"
		v := Versions{Snapshot: &manifests.Snapshot{Files: []*manifests.File{&r.file, {Path: "/m/b"}}}}
		if r.given != nil {
			v.Snapshot.Pods = []*manifests.Pod{r.given}
		}
		if r.refused.Pod != nil {
			v.Refused = []Refusal{r.refused}
		}
		f := status.File{Path: "/m/a"}
		v.Judge(&f)
		if got := said(f.State, f.Versions); got != r.want {
			t.Errorf("%s:\n%s\nwant\n%s", r.what, got, r.want)
		}
	}
	unread := manifests.File{Path: "/m/a", Pods: []string{"d/a"}}
	v := Versions{Snapshot: &manifests.Snapshot{Pods: []*manifests.Pod{given("/m/a", "a", "1")}}}
	if got, want := said(v.of(&unread, nil)), "unread\nd/a unread hash= run= wait= by= 0:0"; got != want {
		t.Errorf("a file that was not read is\n%s\nwant\n%s", got, want)
	}
}

func TestEachObjectOfAFileSaysWhatBecameOfIt(t *testing.T) {
	object := func(file, name string) *manifests.Object {
		return manifests.NewObject(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name}, Data: map[string]string{"k": "hidden"}}, nil, file)
	}
	wrong := func(name, field, message string) status.Problem {
		return status.Problem{File: "/m/a", Line: 7, Column: 2, Object: "ConfigMap d/" + name, Field: field, Message: message}
	}
	warning := wrong("x", "data", "odd")
	warning.Warning = true
	user := &manifests.Pod{File: "/m/p", Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "web"}, Spec: v1.PodSpec{
		Containers: []v1.Container{{EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "x"}}}}}}}}}
	x := manifests.ObjectKey{Kind: "ConfigMap", Namespace: "d", Name: "x"}
	rows := []struct {
		what     string
		good     bool
		problems []status.Problem
		there    *manifests.Object
		want     string
	}{
		{"accepted", true, []status.Problem{warning}, object("/m/a", "x"), "accepted: x accepted 0:0 by= [d/web] "},
		{"given by another file", true, []status.Problem{wrong("x", "metadata.name", "b gives it")}, object("/m/b", "x"),
			"superseded: x superseded 7:2 by=/m/b [d/web] metadata.name: b gives it"},
		{"wrong, and not there", false, []status.Problem{warning, wrong("x", "dat", "unknown field")}, nil, "rejected: x rejected 7:2 by= [d/web] dat: unknown field"},
		{"wrong, the version before counts", false, []status.Problem{wrong("x", "dat", "unknown field")}, object("/m/a", "x"),
			"rejected: x rejected 7:2 by= [d/web] dat: unknown field"},
		{"immutable", true, []status.Problem{wrong("x", "metadata.name", "is immutable")}, object("/m/a", "x"), "rejected: x rejected 7:2 by= [d/web] metadata.name: is immutable"},
		{"forgotten", true, nil, nil, "rejected: x rejected 0:0 by= [d/web] it was forgotten by hand, and no answer has given it since"},
		{"given by another file, which says nothing of it", true, nil, object("/m/b", "x"), "superseded: x superseded 0:0 by=/m/b [d/web] "},
		{"given by a file that is gone", true, nil, object("/m/gone", "x"),
			"waiting: x waiting 0:0 by= [d/web] /m/gone gave it before: it waits until it is certain that this file is gone"},
	}
	for _, r := range rows {
		s := &manifests.Snapshot{Pods: []*manifests.Pod{user}, Files: []*manifests.File{{Path: "/m/a", SHA256: "x", Problems: r.problems, Objects: map[manifests.ObjectKey]bool{x: r.good}}, {Path: "/m/b"}}}
		if r.what == "forgotten" {
			s.Files[0].Forgotten = []string{x.String()}
		}
		if r.there != nil {
			s.Objects = append(s.Objects, r.there)
		}
		f := status.File{Path: "/m/a"}
		(&Versions{Snapshot: s}).Judge(&f)
		got := string(f.State) + ":"
		for _, o := range f.Objects {
			got += fmt.Sprintf(" %s %s %d:%d by=%s %v %s", strings.TrimPrefix(o.Name, "d/"), o.State, o.Line, o.Column, o.By, o.Pods, o.Reason)
		}
		if got != r.want {
			t.Errorf("%s:\n%s\nwant\n%s", r.what, got, r.want)
		}
	}
}

// What a wrong ConfigMap is refused for says nothing of a pod beside it.
func TestAWrongObjectIsNoReasonOfAPod(t *testing.T) {
	f := manifests.File{Path: "/m/a", SHA256: "x", Pods: []string{"d/a"}, Problems: []status.Problem{{Object: "ConfigMap d/x", Message: "wrong"}, {Pod: "d/a", Message: "no"}}}
	v := Versions{Snapshot: &manifests.Snapshot{Pods: []*manifests.Pod{{File: "/m/a", Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "a"}}}}}, refused: map[string]Refusal{}}
	if got, want := said(v.of(&f, nil)), "accepted\nd/a rejected hash= run= wait= by= 0:0 no"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestFilesThatAreGoneTellWhatIsLeftOfThem(t *testing.T) {
	pod := func(file, name string) *manifests.Pod {
		return &manifests.Pod{File: file, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name}}}
	}
	secret := manifests.NewObject(nil, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "s"}}, "/m/gone")
	there := manifests.NewObject(nil, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "t"}}, "/m/a")
	s := &manifests.Snapshot{Pods: []*manifests.Pod{pod("/m/a", "a"), pod("/m/gone", "b")}, Files: []*manifests.File{{Path: "/m/a"}}, Objects: []*manifests.Object{secret, there}}
	got := Leaving(s, map[string][]string{"/m/gone": {"d/c", "d/a"}, "/m/a": {"d/old"}, "": {"d/stray"}})
	want := []status.File{{Path: "/m/gone", Pods: []string{"d/a", "d/b", "d/c"}, Objects: []status.Object{{Kind: "Secret", Name: "d/s"}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// A trial is of the version of the file that gives it, not of the same content in another file.
func TestATrialIsToldOfTheFileThatGivesItsPod(t *testing.T) {
	pod := &manifests.Pod{File: "/m/a", Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "a", UID: "1"}}}
	hashes := map[string]poduid.ContentHash{"d/a": "1"}
	files := []*manifests.File{{Path: "/m/a", SHA256: "x", Hashes: hashes}, {Path: "/m/b", SHA256: "x", Hashes: hashes}}
	v := Versions{Snapshot: &manifests.Snapshot{Files: files, Pods: []*manifests.Pod{pod}}, Trials: []Trial{{Pod: pod, State: status.TrialOn}}}
	for path, want := range map[string]status.Trial{"/m/a": status.TrialOn, "/m/b": ""} {
		f := status.File{Path: path}
		v.Judge(&f)
		if len(f.Versions) != 1 || f.Versions[0].Trial != want {
			t.Errorf("%s has %+v, want the trial %q", path, f.Versions, want)
		}
	}
}

func TestAMaskedFileIsNeitherReadNorWrong(t *testing.T) {
	v := Versions{Snapshot: &manifests.Snapshot{Files: []*manifests.File{{Path: "/m/a", MaskedBy: "/n/a"}}}}
	f := status.File{Path: "/m/a"}
	v.Judge(&f)
	if f.State != status.Masked || len(f.Versions)+len(f.Objects) > 0 {
		t.Errorf("%+v", f)
	}
}
