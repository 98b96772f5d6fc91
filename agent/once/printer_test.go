package once

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podlog"
)

func line(text string) podlog.Line { return podlog.Line{Text: []byte(text)} }

func TestLinesStandBehindTheirContainer(t *testing.T) {
	web, db := made("web", "Always", "main", "log"), made("db", "Always", "main")
	pods := []*v1.Pod{web, db}
	for _, row := range []struct {
		name   string
		colour bool
		want   string
	}{
		{"plain", false, "web/main | one\nweb/log  | two\ndb/main  | thr\nweb/main | \ndb/main  | ee\ndb/main  | open\n"},
		{"coloured", true, "\x1b[36mweb/main |\x1b[0m one\n\x1b[33mweb/log  |\x1b[0m two\n\x1b[32mdb/main  |\x1b[0m thr\n" +
			"\x1b[36mweb/main |\x1b[0m \n\x1b[32mdb/main  |\x1b[0m ee\n\x1b[32mdb/main  |\x1b[0m open\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out strings.Builder
			p := newPrinter(&out)
			s := p.streams(pods, namesOf(pods), row.colour)
			s[web]["main"].line(line("one"))
			s[web]["log"].line(line("two"))
			s[db]["main"].line(podlog.Line{Text: []byte("thr"), Partial: true})
			s[web]["main"].line(line(""))
			s[db]["main"].line(podlog.Line{Text: []byte("ee"), Continued: true})
			s[db]["main"].line(podlog.Line{Text: []byte("op"), Partial: true})
			s[db]["main"].line(podlog.Line{Text: []byte("en"), Partial: true, Continued: true})
			p.close()
			if out.String() != row.want {
				t.Errorf("got\n%q\nwant\n%q", out.String(), row.want)
			}
			if got := strings.Join(s[db]["main"].last(), "|"); got != "three|open" {
				t.Errorf("the last lines are %q", got)
			}
		})
	}
}

func TestNamesHaveTheirNamespaceWhereThereAreSeveral(t *testing.T) {
	a, b := made("web", "Always", "c"), made("web", "Always", "c")
	b.Namespace = "other"
	if n := namesOf([]*v1.Pod{a, b}); n.pod(a) != "default/web" || n.pod(b) != "other/web" {
		t.Errorf("%s, %s", n.pod(a), n.pod(b))
	}
	if n := namesOf([]*v1.Pod{a}); n.pod(a) != "web" {
		t.Error(n.pod(a))
	}
}

// nobody is a pipe that nobody reads from.
type nobody struct{ writes int }

func (n *nobody) Write([]byte) (int, error) {
	n.writes++
	return 0, errors.New("broken pipe")
}

func TestNobodyReads(t *testing.T) {
	web := made("web", "Always", "main")
	out := &nobody{}
	p := newPrinter(out)
	s := p.streams([]*v1.Pod{web}, names{}, false)[web]["main"]
	for range 200 {
		if err := errors.Join(s.line(line(strings.Repeat("x", 2000))), p.flush()); err != nil {
			t.Fatal(err)
		}
	}
	p.close()
	if out.writes != 1 || len(s.last()) != tailLines || len(s.last()[0]) != tailWidth {
		t.Errorf("%d writes, %d last lines of %d bytes", out.writes, len(s.last()), len(s.last()[0]))
	}
}

func TestALineLongerThanAReportKeepsItsEnd(t *testing.T) {
	for _, end := range []string{"", "\n"} {
		job := made("job", "Never", "c")
		s := newPrinter(&strings.Builder{}).streams([]*v1.Pod{job}, names{}, false)[job]["c"]
		const pieces = 13
		for k := range pieces {
			isLast := k == pieces-1
			s.line(podlog.Line{Text: []byte(strings.Repeat("x", podlog.LineMax)), Continued: k > 0, Partial: !isLast || end == ""})
		}
		written := pieces*podlog.LineMax + len(end)
		want := fmt.Sprintf("[the first %d bytes are left out]\n", written-wholeMost) + strings.Repeat("x", wholeMost-len(end)) + end
		if got := s.output(); got != want {
			t.Errorf("%d bytes, want %d: %.60q", len(got), len(want), got)
		}
	}
}

// A line that waits for its end, such as a prompt, is not continued by the container's other stream.
func TestTheOtherStreamOfAContainerBreaksALine(t *testing.T) {
	job := made("job", "Never", "c")
	var out strings.Builder
	p := newPrinter(&out)
	s := p.streams([]*v1.Pod{job}, namesOf([]*v1.Pod{job}), false)[job]["c"]
	for _, l := range []podlog.Line{
		{Stream: podlog.Stdout, Text: []byte("fetches ... "), Partial: true},
		{Stream: podlog.Stderr, Text: []byte("warning: "), Partial: true},
		{Stream: podlog.Stdout, Text: []byte("done"), Continued: true},
		{Stream: podlog.Stderr, Text: []byte("slow"), Continued: true},
	} {
		s.line(l)
	}
	p.close()
	want := []string{"fetches ... ", "warning: ", "done", "slow"}
	if got := s.last(); !slices.Equal(got, want) {
		t.Errorf("the last lines are %q", got)
	}
	if got := s.output(); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("all lines are %q", got)
	}
	if got := out.String(); got != "job/c | "+strings.Join(want, "\njob/c | ")+"\n" {
		t.Errorf("printed %q", got)
	}
}
