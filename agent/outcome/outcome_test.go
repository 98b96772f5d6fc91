package outcome

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/status"
	"monopod/manifests"
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
	hashes := map[string]string{"d/a": "1"}
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
		{"forgotten", manifests.File{Hashes: hashes}, nil, Refusal{},
			"accepted\nd/a rejected hash=1 run= wait= by= 0:0 it was forgotten by hand, and no answer has given it since"},
		{"not admitted", manifests.File{Hashes: hashes}, given("/m/a", "a", "1"), refused("1", "no cpu", false),
			"accepted\nd/a waiting hash=1 run= wait=1 by= 0:0 no cpu"},
		{"not admitted for good", manifests.File{Hashes: hashes}, given("/m/a", "a", "1"), refused("1", "windows", true),
			"accepted\nd/a rejected hash=1 run= wait= by= 0:0 windows"},
		{"an earlier version was not admitted", manifests.File{Hashes: hashes}, given("/m/a", "a", "1"), refused("0", "no cpu", false),
			"accepted\nd/a accepted hash=1 run= wait= by= 0:0"},
	}
	for _, r := range rows {
		r.file.Path, r.file.SHA256 = "/m/a", "x"
		v := Versions{given: map[string]*manifests.Pod{}, refused: map[string]Refusal{"d/a": r.refused}}
		if r.given != nil {
			v.given["d/a"] = r.given
		}
		if got := said(v.of(&r.file)); got != r.want {
			t.Errorf("%s:\n%s\nwant\n%s", r.what, got, r.want)
		}
	}
	if state, all := new(Versions).of(&manifests.File{Path: "/m/a"}); state != status.Unread || len(all) > 0 {
		t.Errorf("a file that was not read is %s, %v", state, all)
	}
}
