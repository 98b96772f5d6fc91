// Package documenttest writes manifests for tests, and compares the problems reported about them.
package documenttest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
)

// Node1 are the options of the node "node1", whose name is in those of its pods.
var Node1 = documents.Options{NodeName: "Node1", NameSuffix: true}

// PodYAML returns a manifest with additional lines in its spec.
func PodYAML(name string, spec ...string) string {
	text := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\nspec:\n"
	for _, line := range spec {
		text += "  " + line + "\n"
	}
	return text + "  containers:\n  - name: c\n    image: busybox\n"
}

// Words formats problems as "line:column field: message", warnings with "~".
func Words(problems []decode.Problem) string {
	var lines []string
	for _, p := range problems {
		line := fmt.Sprintf("%d:%d %s: %s", p.Line, p.Column, p.Field, p.Message)
		if p.Warning {
			line = "~" + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// PodNames returns namespace/name of pods, separated by blanks.
func PodNames(pods []*documents.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Key().String())
	}
	return strings.Join(names, " ")
}

// CheckWords fails the test unless each problem begins with its line in want.
func CheckWords(t *testing.T, problems []decode.Problem, want string) {
	t.Helper()
	got := Words(problems)
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	same := len(gotLines) == len(wantLines) && (got == "") == (want == "")
	for i := 0; same && i < len(wantLines); i++ {
		same = strings.HasPrefix(gotLines[i], wantLines[i])
	}
	if !same {
		t.Errorf("problems:\n%s\nwant:\n%s", got, want)
	}
}

// Accepted decodes a file with one valid pod and returns that.
func Accepted(t *testing.T, o documents.Options, text string) *documents.Pod {
	t.Helper()
	pods, problems := documents.Decode("/m/x.yaml", []byte(text), o)
	if len(pods) != 1 {
		t.Fatalf("%d pods, problems:\n%s", len(pods), Words(problems))
	}
	return pods[0]
}

// ContainerYAML returns a manifest whose one container has additional fields, in flow style.
func ContainerYAML(fields string, spec ...string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  " + strings.Join(append(spec, ""), "\n  ") +
		"containers:\n  - {name: c, image: i, " + fields + "}\n"
}

// CheckProblems compares the beginnings of problems with begin: "field: message", separated by "|",
// "~" before warnings.
func CheckProblems(t *testing.T, problems []decode.Problem, begin string) {
	t.Helper()
	var got []string
	for _, p := range problems {
		text := p.Field + ": " + p.Message
		if p.Warning {
			text = "~" + text
		}
		got = append(got, text)
	}
	var want []string
	if begin != "" {
		want = strings.Split(begin, "|")
	}
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = strings.HasPrefix(got[i], want[i])
	}
	if !same {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// WorkloadYAML returns a workload whose template has the label app: web.
func WorkloadYAML(kind, spec string, podSpec ...string) string {
	version := "apps/v1"
	if kind == "Job" {
		version = "batch/v1"
	}
	text := "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: web, uid: 0a-1b}\nspec:\n"
	if kind != "Job" {
		text += "  selector: {matchLabels: {app: web}}\n"
	}
	if spec != "" {
		text += "  " + spec + "\n"
	}
	text += "  template:\n    metadata: {labels: {app: web}}\n    spec:\n"
	for _, line := range podSpec {
		text += "      " + line + "\n"
	}
	return text + "      containers:\n      - name: c\n        image: busybox\n"
}

// Numbered returns a format repeated with each number below n.
func Numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Allocated returns how many bytes a function allocates in total.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
