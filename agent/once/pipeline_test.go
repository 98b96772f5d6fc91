package once

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
)

func TestAPipelineGetsItsMarks(t *testing.T) {
	job := made("job", "Never", "c")
	for _, row := range []struct{ variable, want string }{
		{"", "monopod: job: failed, c exit code 7, 0.0 s\nmonopod: pod job failed: container c ended with exit code 7\n"},
		{"GITHUB_ACTIONS", "::group::monopod once: output of the containers\n::endgroup::\nmonopod: job: failed, c exit code 7, 0.0 s\n" +
			"monopod: pod job failed: container c ended with exit code 7\n::error title=monopod once::pod job failed: container c ended with exit code 7\n"},
		{"GITLAB_CI", "\x1b[0Ksection_start:946684800:monopod_once\r\x1b[0Kmonopod once: output of the containers\n\x1b[0Ksection_end:946684801:monopod_once\r\x1b[0K\n" +
			"monopod: job: failed, c exit code 7, 0.0 s\nmonopod: pod job failed: container c ended with exit code 7\n"},
	} {
		env := func(name string) string { return map[string]string{row.variable: "true"}[name] }
		a, code, _ := tell(t, []*v1.Pod{job}, func(a *actor) { a.config.Pipeline = PipelineOf(env, &a.err) }, func(a *actor) {
			a.report(now(job, v1.PodFailed, states{"c": exited("1", 7)}))
		})
		said := a.err.String()
		if code != 7 || said != row.want {
			t.Errorf("%s: code %d, said\n%q\nwant\n%q", row.variable, code, said, row.want)
		}
	}
}

func TestAProblemIsMarkedAtItsPlace(t *testing.T) {
	var out bytes.Buffer
	p := Pipeline{&out, "github"}
	p.Problem(decode.Problem{File: "a,b.yaml", Line: 3, Column: 5, Field: "spec.x", Message: "100% wrong\nin two lines"})
	p.Problem(decode.Problem{File: "c.yaml", Message: "odd", Warning: true})
	Pipeline{&out, "gitlab"}.Problem(decode.Problem{File: "c.yaml", Message: "odd"})
	want := "::error file=a%2Cb.yaml,line=3,col=5::spec.x: 100%25 wrong%0Ain two lines\n::warning file=c.yaml::odd\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

func TestPodsAreSummedUp(t *testing.T) {
	var got []string
	for _, p := range summaryOf(ended()).Pods {
		got = append(got, p.line(p.Name))
	}
	want := "good: succeeded, 4.0 s|bad: failed, a exit code 7, 30.0 s|db: still ran, 30.0 s|slow: still ran, restarts of c: 2, 30.0 s|lost: pending, c waits: ImagePullBackOff, 0.0 s"
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestOutputIsKeptWholeUpToABound(t *testing.T) {
	p := newPrinter(&bytes.Buffer{})
	job := made("job", "Never", "c")
	s := p.streams([]*v1.Pod{job}, names{}, false)[job]["c"]
	for k := range 100 {
		s.line(line(fmt.Sprint(k)))
	}
	if text := s.output(); strings.Count(text, "\n") != 100 || !strings.HasPrefix(text, "0\n1\n") {
		t.Errorf("of 100 lines there are %d", strings.Count(text, "\n"))
	}
	row, written := strings.Repeat("x", 999), len(s.output())
	for range 5000 {
		s.line(line(row))
		written += len(row) + 1
	}
	text := s.output()
	first, rest, _ := strings.Cut(text, "\n")
	if len(text) < wholeMost-2000 || len(text) > wholeMost+100 || len(s.whole) > 2*wholeMost+1000 || strings.Trim(rest, "x\n") != "" {
		t.Errorf("%d bytes, of %d kept", len(text), len(s.whole))
	}
	var cut int
	if _, err := fmt.Sscanf(first, "[the first %d bytes are left out]", &cut); err != nil || written-cut < len(rest) || written-cut > len(rest)+2000 {
		t.Errorf("%q, with %d written and %d left: %v", first, written, len(rest), err)
	}
}
