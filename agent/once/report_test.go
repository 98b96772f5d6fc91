package once

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ended returns a session that has ended, with pods in all states.
func ended() *session {
	t := func(seconds int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 1, 2, 3, 4, seconds, 0, time.UTC))
	}
	good, bad, db := made("good", "Never", "c"), made("bad", "Never", "a", "b"), made("db", "Always", "c")
	bad.Spec.InitContainers = []v1.Container{{Name: "i", Image: "img:1"}, {Name: "side", Image: "img:2", RestartPolicy: new(v1.ContainerRestartPolicyAlways)}}
	slow, lost := made("slow", "OnFailure", "c"), made("lost", "Never", "c")
	end := func(code int32, from, to int) v1.ContainerState {
		s := exited("x", code)
		s.Terminated.StartedAt, s.Terminated.FinishedAt = t(from), t(to)
		return s
	}
	run := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: t(2)}}
	s := &session{began: t(0).Time, finished: t(30).Time, outcome: &outcome{End: endTimeout, Code: 124, Text: "the work has not ended within 30s"}}
	s.final = []view{
		now(good, v1.PodSucceeded, states{"c": end(0, 1, 4)}),
		now(bad, v1.PodFailed, states{"i": end(0, 1, 2), "side": run, "a": end(7, 2, 9), "b": waiting("PodInitializing", "")}),
		now(db, v1.PodRunning, states{"c": run}),
		now(slow, v1.PodRunning, states{"c": run}),
		now(lost, v1.PodPending, states{"c": waiting("ImagePullBackOff", `Back-off pulling image "<img>"`)}),
	}
	for k := range s.final {
		s.final[k].status.StartTime = new(t(0))
		s.Pods = append(s.Pods, s.final[k].pod)
	}
	s.final[3].status.ContainerStatuses[0].RestartCount = 2
	s.final[3].status.ContainerStatuses[0].LastTerminationState = end(1, 1, 2)
	p := newPrinter(io.Discard)
	s.logs = &follower{streams: p.streams(s.Pods, names{}, false)}
	s.logs.streams[bad]["a"].line(line("\x1b[31mred\x1b[0m & \"<gone>\"\r"))
	s.logs.streams[bad]["a"].line(line("\xff\x00 ]]> ü"))
	return s
}

func TestReports(t *testing.T) {
	for _, row := range []struct {
		file  string
		print func(*Summary) ([]byte, error)
	}{{"report.json", printJSON}, {"junit.xml", junit}} {
		golden := filepath.Join("..", "..", "testdata", "once", row.file)
		got, err := row.print(ended().summary())
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("MONOPOD_UPDATE") != "" {
			if err := errors.Join(os.MkdirAll(filepath.Dir(golden), 0o755), os.WriteFile(golden, got, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s (%v): got\n%s", row.file, err, got)
		}
	}
}

func TestJUnitIsXML(t *testing.T) {
	b, err := junit(ended().summary())
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(b)))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseReport(t *testing.T) {
	dir := t.TempDir()
	for text, says := range map[string]string{
		"junit=" + dir + "/a.xml": "", "json=" + dir + "/b.json": "",
		"junit": "write junit=FILE", "junit=": "write junit=FILE", "html=" + dir + "/x": "choose junit or json", "json=" + dir + "/none/x": "no such file",
	} {
		if _, err := ParseReport(text); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
