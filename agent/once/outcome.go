package once

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/manifests"
	"monopod/manifests/annotations"
	"monopod/manifests/defaults"
)

// Exit codes in addition to those of containers.
const (
	codeTimeout = 124
	codeFailed  = 125 // monopod or the runtime, not the work
	codeSignal  = 128 // and the signal's number
)

// The ways in which a run ends, as the JSON report calls them.
const (
	endSucceeded   = "succeeded"
	endFailed      = "failed"
	endReady       = "ready"
	endTimeout     = "timeout"
	endInterrupted = "interrupted"
	endError       = "error"
)

// outcome is how a run ends.
type outcome struct {
	End  string
	Code int
	Text string // a sentence
	// Shaky: it may change by itself in a moment, and counts only if it stays so.
	Shaky bool
}

// stopsWhatRuns reports whether the work was cut short. Then a signal kills what runs.
func (o *outcome) stopsWhatRuns() bool {
	return o.End == endTimeout || o.End == endInterrupted || o.End == endError
}

// followedBy returns the outcome of the run: that of its work, unless this is well and what comes after it
// is not.
func (o *outcome) followedBy(copied, removed bool) *outcome {
	var lacks []string
	if !copied {
		lacks = append(lacks, "not all artifacts could be copied")
	}
	if !removed {
		lacks = append(lacks, "not all could be removed")
	}
	if o.Code != 0 || len(lacks) == 0 {
		return o
	}
	text := strings.Join(lacks, ", and ")
	if o.Text != "" {
		text = o.Text + ", but " + text
	}
	return &outcome{End: endError, Code: codeFailed, Text: text}
}

// evaluator decides when the work is done, and how. It belongs to one goroutine.
type evaluator struct {
	names names
	ready bool    // the work is done when all pods are ready
	fast  bool    // the first pod that fails ends the work
	from  *Chosen // whose code counts; nil: the first that failed

	timed  bool    // the run has a limit of time
	starts *Starts // that failed

	past past
	seen map[string]int // container ids that ended badly, in the order in which that was seen
}

// look returns how the run ends, nil while it continues.
func (j *evaluator) look(all []view) *outcome {
	j.note(all)
	j.past.note(all, j.starts)
	if o := j.end(all); o != nil {
		return o
	}
	return j.hopeless(all)
}

// end returns how the run ends by the state of its pods.
func (j *evaluator) end(all []view) *outcome {
	if o := j.unschedulable(all); o != nil {
		return o
	}
	if j.ready {
		return j.readiness(all)
	}
	if j.fast {
		if o := j.firstFailed(all); o != nil {
			return o
		}
	}
	never := deadlocked(all)
	jobs := 0
	for k := range all {
		v := &all[k]
		chosen := j.from != nil && v.pod == j.from.Pod
		switch {
		case chosen && j.chosenDone(v):
			jobs++
		case (isJob(v.pod) || chosen) && (v.ended() || never[key(v.pod)]):
			jobs++
		case isJob(v.pod) || chosen:
			return nil
		}
	}
	if jobs == 0 {
		return nil
	}
	if j.from != nil {
		if o := j.chosenOutcome(all); o != nil {
			return o
		}
	}
	if o := j.firstFailed(all); o != nil {
		return o
	}
	if len(never) > 0 { // they wait for each other
		return &outcome{End: endError, Code: codeFailed, Shaky: true, Text: strings.Join(j.called(all, never), ", ") + " waits for pods that will never be ready"}
	}
	return &outcome{End: endSucceeded, Text: "all work has succeeded"}
}

func (j *evaluator) called(all []view, which map[string]bool) []string {
	var out []string
	for k := range all {
		if which[key(all[k].pod)] {
			out = append(out, j.names.pod(all[k].pod))
		}
	}
	return out
}

func (j *evaluator) readiness(all []view) *outcome {
	if o := j.firstFailed(all); o != nil {
		return o
	}
	for k := range all {
		if !all[k].ready() {
			return nil
		}
	}
	return &outcome{End: endReady, Text: "all pods are ready"}
}

// chosenDone reports whether the chosen container has ended and is not restarted; for one that is
// always restarted, whether it has ended once.
func (j *evaluator) chosenDone(v *view) bool {
	if v.ended() || j.from.Container == "" {
		return v.ended()
	}
	s, ok := v.container(j.from.Container)
	t := lastEnd(&s)
	if !ok || t == nil {
		return false
	}
	all := containers(v.pod)
	c := &all[slices.IndexFunc(all, func(c v1.Container) bool { return c.Name == s.Name })]
	switch {
	case defaults.RestartPolicyOf(v.pod, c) == v1.RestartPolicyAlways:
		return true
	case len(c.RestartPolicyRules) > 0:
		return false // the pod's end will decide
	}
	return s.State.Terminated != nil && (t.ExitCode == 0 || defaults.RestartPolicyOf(v.pod, c) == v1.RestartPolicyNever)
}

// chosenOutcome returns what the chosen container ended with, nil if it never started.
func (j *evaluator) chosenOutcome(all []view) *outcome {
	v := &all[slices.IndexFunc(all, func(v view) bool { return v.pod == j.from.Pod })]
	if j.from.Container == "" {
		switch {
		case v.failed():
			return j.failure(v)
		case v.ended():
			return &outcome{End: endSucceeded, Text: "pod " + j.names.pod(v.pod) + " has succeeded"}
		}
		return nil
	}
	s, _ := v.container(j.from.Container)
	t := lastEnd(&s)
	subject := j.names.pod(v.pod) + "/" + s.Name
	switch {
	case t == nil:
		return nil
	case t.ExitCode == 0:
		return &outcome{End: endSucceeded, Text: subject + " has succeeded"}
	}
	return &outcome{End: endFailed, Code: int(t.ExitCode), Text: subject + " " + endWords(t)}
}

// firstFailed returns the outcome of the pod one of whose containers ended badly first, among those
// that failed; nil if none did.
func (j *evaluator) firstFailed(all []view) *outcome {
	var failed []*view
	for k := range all {
		if all[k].failed() {
			failed = append(failed, &all[k])
		}
	}
	if len(failed) == 0 {
		return nil
	}
	slices.SortStableFunc(failed, func(a, b *view) int { return j.compare(j.failedContainer(a), j.failedContainer(b)) })
	o := j.failure(failed[0])
	for _, v := range failed[1:] {
		o.Text += "; " + j.failure(v).Text
	}
	return o
}

// failedContainer returns the container of a failed pod that ended badly first, nil if none did.
func (j *evaluator) failedContainer(v *view) *v1.ContainerStatus {
	var bad []v1.ContainerStatus
	for _, s := range v.containers() {
		if t := lastEnd(&s); t != nil && t.ExitCode != 0 && s.State.Running == nil && !isSidecar(v.pod, s.Name) {
			bad = append(bad, s)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return new(slices.MinFunc(bad, func(a, b v1.ContainerStatus) int { return j.compare(&a, &b) }))
}

// failure is the outcome of a failed pod: the exit code of the container that
// failed it.
func (j *evaluator) failure(v *view) *outcome {
	o := &outcome{End: endFailed, Code: 1, Text: "pod " + j.names.pod(v.pod) + " failed"}
	if v.status.Reason != "" {
		o.Text += ": " + joinWords(v.status.Reason, v.status.Message)
	}
	if s := j.failedContainer(v); s != nil {
		o.Code = int(lastEnd(s).ExitCode)
		o.Text += ": container " + s.Name + " " + endWords(lastEnd(s))
	}
	return o
}

// mayFit reports whether pods that end may free what a refused pod lacks.
func mayFit(v *view, all []view) bool {
	if r := v.status.Reason; !strings.HasPrefix(r, "OutOf") && r != "NodePorts" {
		return false
	}
	return slices.ContainsFunc(all, func(o view) bool { return o.pod != v.pod && isJob(o.pod) && !o.ended() && !o.refused() && !o.held() })
}

// deadlocked returns the pods that wait for others which will never be ready: those have failed,
// are not among the pods, or wait in a circle.
func deadlocked(all []view) map[string]bool {
	waits := map[string][]string{}
	alive := map[string]bool{} // may become ready
	for k := range all {
		v := &all[k]
		o := annotations.OrderOf(v.pod)
		if !v.held() || o.Timeout > 0 {
			alive[key(v.pod)] = !v.failed()
			continue
		}
		for _, after := range o.After {
			waits[key(v.pod)] = append(waits[key(v.pod)], called(all, after))
		}
	}
	for again := true; again; {
		again = false
		for pod, after := range waits {
			if !alive[pod] && !slices.ContainsFunc(after, func(name string) bool { return !alive[name] }) {
				alive[pod], again = true, true
			}
		}
	}
	out := map[string]bool{}
	for pod := range waits {
		if !alive[pod] {
			out[pod] = true
		}
	}
	return out
}

// called returns the key of the pod that a manifest names.
func called(all []view, name manifests.Key) string {
	for k := range all {
		if p := all[k].pod; p.Namespace == name.Namespace && (p.Name == name.Name || print.ShortName(p) == name.Name) {
			return key(p)
		}
	}
	return name.String()
}
