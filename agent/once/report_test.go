package once

import (
	"encoding/json"
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
		s.config.Pods = append(s.config.Pods, s.final[k].pod)
	}
	s.final[3].status.ContainerStatuses[0].RestartCount = 2
	s.final[3].status.ContainerStatuses[0].LastTerminationState = end(1, 1, 2)
	p := newPrinter(io.Discard)
	s.logs = &follower{streams: p.streams(s.config.Pods, names{}, false)}
	s.logs.streams[bad]["a"].line(line("\x1b[31mred\x1b[0m & \"<gone>\"\r"))
	s.logs.streams[bad]["a"].line(line("\xff\x00 ]]> ü"))
	return s
}

// summaryOf sums a run up that ended as its work did.
func summaryOf(s *session) *Summary { return s.summary(s.outcome) }

func TestReports(t *testing.T) {
	for _, row := range []struct {
		file  string
		print func(*Summary) ([]byte, error)
	}{{"report.json", printJSON}, {"junit.xml", junit}} {
		golden := filepath.Join("..", "..", "testdata", "once", row.file)
		got, err := row.print(summaryOf(ended()))
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

// A service is stopped with the jobs. That it ran when it was looked at last says little
// of one that crashes again and again.
func TestAServiceThatCrashesHasNotPassed(t *testing.T) {
	at := func(seconds int) metav1.Time { return metav1.Unix(1_700_000_000+int64(seconds), 0) }
	for _, row := range []struct {
		name     string
		code     int32
		from, to int // the attempt that crashed; 0: it was not started
		since    int // the present attempt runs
		element  string
	}{
		{"that ran for a moment each time", 1, 90, 91, 98, "failure"},
		{"that cannot be started", 128, 0, 91, 98, "failure"},
		{"that crashed once its database was away", 1, 10, 50, 51, "failure"},
		{"that crashed until its database was there", 1, 10, 11, 21, ""},
		{"that ends with 0 and is started again", 0, 90, 91, 98, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			db, job := made("db", "Always", "c"), made("job", "Never", "c")
			v := now(db, v1.PodRunning, states{"c": {Running: &v1.ContainerStateRunning{StartedAt: at(row.since)}}})
			last := exited("x", row.code)
			last.Terminated.StartedAt, last.Terminated.FinishedAt = metav1.Unix(0, 0), at(row.to)
			if row.from > 0 {
				last.Terminated.StartedAt = at(row.from)
			}
			v.status.ContainerStatuses[0].RestartCount, v.status.ContainerStatuses[0].LastTerminationState = 3, last
			s := &session{began: at(0).Time, finished: at(100).Time, outcome: &outcome{End: endSucceeded}, final: []view{v, now(job, v1.PodSucceeded, states{"c": exited("1", 0)})}}
			s.config.Pods = []*v1.Pod{db, job}
			s.logs = &follower{streams: newPrinter(io.Discard).streams(s.config.Pods, names{}, false)}
			sum := summaryOf(s)
			if element, message := resultOf(sum, &sum.Pods[0], &sum.Pods[0].Containers[0]); element != row.element {
				t.Errorf("it is %q %s, want %q", element, message, row.element)
			}
			if line := sum.Pods[0].line("db"); strings.Contains(line, "exit code") != (row.element != "") {
				t.Errorf("said %s", line)
			}
		})
	}
}

// What the first failure cut short has neither passed nor failed.
func TestAJobThatWasCutShortHasNotPassed(t *testing.T) {
	s := &Summary{work: endFailed, Message: "pod other failed"}
	element, message := resultOf(s, &PodSummary{job: true}, &ContainerSummary{Kind: "container", Result: resultRunning})
	if element != "skipped" || message != "it was stopped before its end: pod other failed" {
		t.Errorf("it is %q: %s", element, message)
	}
}

// A container that was never started has no time of its own, and took none.
func TestWhatWasNotStartedTookNoTime(t *testing.T) {
	job := made("job", "Never", "c")
	end := exited("x", 128)
	end.Terminated.StartedAt, end.Terminated.FinishedAt = metav1.Unix(0, 0), metav1.Unix(1_795_423_507, 0)
	s := &session{began: time.Unix(1_795_423_500, 0), finished: time.Unix(1_795_423_510, 0), outcome: &outcome{End: endFailed, Code: 128}}
	s.final, s.config.Pods = []view{now(job, v1.PodFailed, states{"c": end})}, []*v1.Pod{job}
	s.final[0].status.StartTime = new(metav1.Unix(1_795_423_501, 0))
	s.logs = &follower{streams: newPrinter(io.Discard).streams(s.config.Pods, names{}, false)}
	sum := summaryOf(s)
	if line := sum.Pods[0].line("job"); !strings.HasSuffix(line, ", 0.0 s") {
		t.Errorf("said %s", line)
	}
	for _, print := range []func(*Summary) ([]byte, error){junit, printJSON} {
		text, err := print(sum)
		if err != nil || strings.Contains(string(text), "1970") || strings.Contains(string(text), "17954235") {
			t.Errorf("%v: %s", err, text)
		}
	}
}

func TestJUnitIsXML(t *testing.T) {
	b, err := junit(summaryOf(ended()))
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

// The report of a former run in the same place must not be taken for that of one that is killed.
func TestAReportBeginsEmpty(t *testing.T) {
	path := t.TempDir() + "/report.xml"
	write := func(text string) {
		if err := (Report{Path: path, print: func(*Summary) ([]byte, error) { return []byte(text), nil }}).write(nil); err != nil {
			t.Fatal(err)
		}
	}
	write("all has passed")
	if _, err := ParseReport("junit=" + path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || len(text) > 0 {
		t.Errorf("it has %q, %v", text, err)
	}
}

// The work may be well and the run not: who reads the reports, or the mark of the CI service, must
// see that, too.
func TestAReportHasTheExitCodeOfTheRun(t *testing.T) {
	job := made("job", "Never", "c")
	done := func(a *actor) { a.report(now(job, v1.PodSucceeded, states{"c": exited("1", 0)})) }
	for _, row := range []struct {
		name    string
		prepare func(*actor)
		why     string
	}{
		{"an artifact is missing", func(a *actor) {
			one, err := ParseArtifact([]*v1.Pod{job}, "job/c:/out="+filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			a.config.Artifacts = []*Artifact{one}
		}, "all work has succeeded, but not all artifacts could be copied"},
		{"something of the pods is left", func(a *actor) { a.left = errors.New("something is left of job") },
			"all work has succeeded, but not all could be removed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report")
			a, code, _ := tell(t, []*v1.Pod{job}, func(a *actor) {
				row.prepare(a)
				a.config.Reports = []Report{{path, printJSON}}
				a.config.Pipeline = Pipeline{&a.err, "github"}
			}, done)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Outcome, Message string
				ExitCode         int
			}
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if code != codeFailed || got.ExitCode != code || got.Outcome != endError || got.Message != row.why {
				t.Errorf("code %d, reported %+v", code, got)
			}
			a.says("::error title=monopod once::" + row.why)
		})
	}
}

// A container may hear the signal that its pod's deadline sends, and end with 0.
func TestAPodThatFailsHasAFailureInItsSuite(t *testing.T) {
	ended := func(code int32, to int64) v1.ContainerState {
		s := exited("x", code)
		s.Terminated.StartedAt, s.Terminated.FinishedAt = metav1.Unix(1_700_000_000, 0), metav1.Unix(1_700_000_000+to, 0)
		return s
	}
	const late = "DeadlineExceeded: it took too long"
	for _, row := range []struct {
		name string
		ends states
		want [2]string // of the containers a and b
	}{
		{"both end with 0: the one that ran to the deadline", states{"a": ended(0, 3), "b": ended(0, 60)}, [2]string{"", "failure " + late}},
		{"one does not", states{"a": ended(0, 60), "b": ended(143, 60)}, [2]string{"", "failure exit code 143"}},
		{"one never started", states{"a": ended(0, 60), "b": waiting("PodInitializing", "")}, [2]string{"", "error " + late}},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := now(made("job", "Never", "a", "b"), v1.PodFailed, row.ends)
			v.status.Reason, v.status.Message = "DeadlineExceeded", "it took too long"
			s := &session{outcome: &outcome{End: endFailed, Code: 1}, final: []view{v}, config: Config{Pods: []*v1.Pod{v.pod}}}
			s.logs = &follower{streams: newPrinter(io.Discard).streams(s.config.Pods, names{}, false)}
			sum := summaryOf(s)
			for k, want := range row.want {
				element, message := resultOf(sum, &sum.Pods[0], &sum.Pods[0].Containers[k])
				if got := strings.TrimSpace(element + " " + message); got != want {
					t.Errorf("container %d is %q, want %q", k, got, want)
				}
			}
		})
	}
}
