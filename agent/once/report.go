package once

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"monopod/agent/print"

	v1 "k8s.io/api/core/v1"
)

// Report is a file with the result of the run.
type Report struct {
	Path  string
	print func(*Summary) ([]byte, error)
}

// ParseReport reads FORMAT=FILE and makes sure that the file can be written. It empties the file: the
// report of a former run must not stand for this one, however this one ends.
func ParseReport(text string) (Report, error) {
	format, path, ok := strings.Cut(text, "=")
	r := Report{Path: path}
	switch {
	case !ok || path == "":
		return r, fmt.Errorf("--report %q: write junit=FILE or json=FILE", text)
	case format == "junit":
		r.print = junit
	case format == "json":
		r.print = printJSON
	default:
		return r, fmt.Errorf("--report %q: choose junit or json", text)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return r, fmt.Errorf("--report: %w", err)
	}
	return r, f.Close()
}

func (r Report) write(s *Summary) error {
	b, err := r.print(s)
	if err != nil {
		return err
	}
	return os.WriteFile(r.Path, b, 0o644)
}

func printJSON(s *Summary) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(s)
	return b.Bytes(), err
}

// Summary is the JSON report. Pods are as they were when the work was done, before what still ran
// was stopped.
type Summary struct {
	Outcome  string       `json:"outcome"` // succeeded, failed, ready, timeout, interrupted or error
	ExitCode int          `json:"exitCode"`
	Message  string       `json:"message"`
	Started  time.Time    `json:"startedAt"`
	Finished time.Time    `json:"finishedAt"` // when the work was done
	Seconds  float64      `json:"seconds"`
	Pods     []PodSummary `json:"pods"`               // in the order of the manifests
	Problems []string     `json:"problems,omitempty"` // of refused manifests, as Config.Problems

	work string // the outcome of the work, whatever came after it
}

// PodSummary is one pod.
type PodSummary struct {
	Namespace  string             `json:"namespace"`
	Name       string             `json:"name"` // as in the manifest
	Phase      v1.PodPhase        `json:"phase"`
	Reason     string             `json:"reason,omitempty"`
	Message    string             `json:"message,omitempty"`
	Started    time.Time          `json:"startedAt,omitzero"`
	Seconds    float64            `json:"seconds"`
	Containers []ContainerSummary `json:"containers"` // init containers first

	job    bool
	unseen bool // nothing was reported of it
}

// Results of a container.
const (
	resultSucceeded = "succeeded"
	resultFailed    = "failed"  // it ended with another code than 0, or ran for a moment after that, see crashes
	resultRunning   = "running" // it ran when the work was done, and was stopped then
	resultWaiting   = "waiting" // it could not start, or waited to be started again
	resultNever     = "never"   // its turn did not come
)

// ContainerSummary is one container; of several attempts, the last that ended or runs.
type ContainerSummary struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"` // container, init or sidecar
	Image    string    `json:"image"`
	Result   string    `json:"result"`             // succeeded, failed, running, waiting or never
	ExitCode *int32    `json:"exitCode,omitempty"` // of the last attempt that ended
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Restarts int32     `json:"restarts"`
	Started  time.Time `json:"startedAt,omitzero"`
	Finished time.Time `json:"finishedAt,omitzero"`
	Seconds  float64   `json:"seconds"`
	Output   []string  `json:"output"` // the last lines, at most 50

	whole string // all that it wrote, bounded
}

// summary sums the run up. o is its outcome, which is that of its work unless something failed after it.
func (s *session) summary(o *outcome) *Summary {
	out := &Summary{Outcome: o.End, ExitCode: o.Code, Message: o.Text, Started: s.began.UTC(), Finished: s.finished.UTC(),
		Seconds: between(s.began, s.finished), Pods: []PodSummary{}, Problems: s.config.Problems, work: s.outcome.End}
	for k := range s.final {
		v := &s.final[k]
		p := PodSummary{Namespace: v.pod.Namespace, Name: print.ShortName(v.pod), Phase: v1.PodPending, job: isJob(v.pod), unseen: true, Containers: []ContainerSummary{}}
		if v.status != nil {
			p.unseen = false
			p.Phase, p.Reason, p.Message = v.status.Phase, v.status.Reason, v.status.Message
			if v.status.StartTime != nil {
				p.Started = known(v.status.StartTime.Time)
			}
		}
		for _, c := range containers(v.pod) {
			is, end := v.lastRun(c.Name, s.finished)
			sum := summarize(v.pod, &c, &is, end)
			sum.whole = s.logs.output(v.pod, c.Name)
			sum.Output = append([]string{}, s.logs.tail(v.pod, c.Name)...)
			p.Containers = append(p.Containers, sum)
			if !p.Started.IsZero() && !sum.Started.IsZero() {
				p.Seconds = max(p.Seconds, between(p.Started, sum.Started)+sum.Seconds)
			}
		}
		out.Pods = append(out.Pods, p)
	}
	return out
}

// line sums a pod up: its state, and how long it took.
func (p *PodSummary) line(name string) string {
	word := strings.ToLower(string(p.Phase))
	if p.Phase == v1.PodRunning {
		word = "still ran"
	}
	for k := range p.Containers {
		c := &p.Containers[k]
		switch {
		case c.Result == resultFailed && c.Kind != "sidecar":
			word += fmt.Sprintf(", %s exit code %d", c.Name, *c.ExitCode)
		case c.Result == resultWaiting && c.Reason != "ContainerCreating":
			word += ", " + joinWords(c.Name+" waits", c.Reason)
		}
		if c.Restarts > 0 {
			word += fmt.Sprintf(", restarts of %s: %d", c.Name, c.Restarts)
		}
	}
	if p.Reason != "" {
		word += ", " + p.Reason
	}
	return fmt.Sprintf("%s: %s, %.1f s", name, word, p.Seconds)
}

func summarize(p *v1.Pod, c *v1.Container, s *v1.ContainerStatus, end time.Time) ContainerSummary {
	out := ContainerSummary{Name: c.Name, Kind: "container", Image: c.Image, Restarts: s.RestartCount, Result: resultNever}
	for k := range p.Spec.InitContainers {
		if p.Spec.InitContainers[k].Name == c.Name {
			out.Kind = "init"
		}
	}
	if isSidecar(p, c.Name) {
		out.Kind = "sidecar"
	}
	if t := lastEnd(s); t != nil {
		out.ExitCode, out.Reason, out.Message = &t.ExitCode, t.Reason, t.Message
		out.Started, out.Finished = known(t.StartedAt.Time), known(t.FinishedAt.Time)
		out.Seconds = between(out.Started, out.Finished)
		out.Result = resultFailed
		if t.ExitCode == 0 {
			out.Result = resultSucceeded
		}
	}
	switch {
	case s.State.Running != nil && crashes(s, end):
		out.Reason = "CrashLoopBackOff"
	case s.State.Running != nil:
		out.Result, out.Reason, out.Message = resultRunning, "", ""
		out.Started, out.Finished = known(s.State.Running.StartedAt.Time), time.Time{}
		out.Seconds = between(out.Started, end)
	case s.State.Waiting != nil && s.State.Waiting.Reason != "PodInitializing" && s.State.Waiting.Reason != "":
		out.Result, out.Reason, out.Message = resultWaiting, s.State.Waiting.Reason, s.State.Waiting.Message
	}
	return out
}

// lastRun returns the status of a container, and the end of the time that it tells of: that of the
// work. A sidecar is stopped when the other containers of its pod have ended, and what it ends with
// then says nothing of it: it is returned as it was before.
func (v *view) lastRun(name string, end time.Time) (v1.ContainerStatus, time.Time) {
	s, _ := v.container(name)
	t := s.State.Terminated
	if !v.ended() || t == nil || t.ExitCode == 0 || !isSidecar(v.pod, name) {
		return s, end
	}
	for _, other := range v.containers() {
		if o := other.State.Terminated; o != nil && !isSidecar(v.pod, other.Name) && o.FinishedAt.After(t.FinishedAt.Time) {
			return s, end // it had ended before
		}
	}
	s.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: t.StartedAt}}
	return s, t.FinishedAt.Time
}

// provenAfter is the least time for which a container that had crashed must run to be well.
const provenAfter = 10 * time.Second

// crashes reports whether a container that runs at the end is one that crashes again and
// again: the attempt before ended with another code than 0, and the present one has not
// run for twice as long as that one, or for a few seconds. One that crashed until what it
// needs was there, and then ran, is well.
func crashes(s *v1.ContainerStatus, end time.Time) bool {
	t := s.LastTerminationState.Terminated
	if t == nil || t.ExitCode == 0 {
		return false
	}
	ran := between(known(s.State.Running.StartedAt.Time), end)
	before := between(known(t.StartedAt.Time), known(t.FinishedAt.Time))
	return ran < max(2*before, provenAfter.Seconds())
}

// known returns a time of a status, zero if it is none: a container that was not started
// has 1970 there, as with a kubelet.
func known(t time.Time) time.Time {
	if t.Unix() <= 0 {
		return time.Time{}
	}
	return t.UTC()
}

// between returns seconds with three digits, not below 0; 0 if one of the times is not
// known.
func between(a, b time.Time) float64 {
	if a.IsZero() || b.IsZero() {
		return 0
	}
	return max(b.Sub(a).Round(time.Millisecond), 0).Seconds()
}
