package once

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"monopod/agent/print"

	v1 "k8s.io/api/core/v1"
)

// endWords returns how a container ended.
func endWords(t *v1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		text += " (" + t.Reason + ")"
	}
	if t.Message != "" && t.ExitCode != 0 {
		text += ": " + print.OneLine(t.Message)
	}
	return text
}

// finding is one line about a pod or container.
type finding struct {
	about string // the pod, or POD/CONTAINER
	print.Word
}

func (l *finding) String() string { return l.about + ": " + l.Text }

// waits returns what a pod waits for, and what is wrong with it, in the words of monopod ps. What
// ends the run is left out, and how containers ended: see ends.
func waits(v *view, n names, now time.Time) (all []finding) {
	if v.reported == nil || v.ended() {
		return nil
	}
	for _, w := range print.WordsOf(v.reported, now) {
		if w.Ended || slices.Contains(final, w.Reason) {
			continue
		}
		about := n.pod(v.pod)
		if w.Name != "" {
			about += "/" + w.Name
		}
		all = append(all, finding{about, w})
	}
	return all
}

// unfinished returns what keeps the work from its end: what each pod waits for, or which of its
// containers keep running.
func unfinished(all []view, ready bool, n names, now time.Time) string {
	var out []string
	for k := range all {
		v := &all[k]
		texts := waits(v, n, now)
		for k := range texts {
			out = append(out, texts[k].String())
		}
		for _, s := range v.containers() {
			if s.State.Running != nil && len(texts) == 0 && !ready && isJob(v.pod) && !isSidecar(v.pod, s.Name) {
				out = append(out, n.pod(v.pod)+"/"+s.Name+" still runs")
			}
		}
	}
	return strings.Join(out, "; ")
}

// ends returns which containers ended badly, and at which attempt.
func ends(v *view, n names) (all []finding) {
	for _, s := range v.containers() {
		t := lastEnd(&s)
		if t == nil || t.ExitCode == 0 {
			continue
		}
		words := endWords(t)
		if attempt := attemptOf(&s); attempt > 1 {
			words += fmt.Sprintf(" (attempt %d)", attempt)
		}
		all = append(all, finding{n.pod(v.pod) + "/" + s.Name, print.Word{Text: words, Lasts: words}})
	}
	return all
}

// attemptOf returns which attempt ended last, from 1.
func attemptOf(s *v1.ContainerStatus) int32 {
	if s.State.Running != nil {
		return s.RestartCount
	}
	return s.RestartCount + 1
}

// joinWords joins the non-empty parts by colons.
func joinWords(parts ...string) string {
	var texts []string
	for _, p := range parts {
		if p != "" {
			texts = append(texts, print.OneLine(p))
		}
	}
	return strings.Join(texts, ": ")
}
