package print

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
	"monopod/manifests/defaults"
)

// SGR codes for the STATUS word.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
)

// Health is whether something is well.
type Health int

const (
	Over     Health = iota // it has ended as it should
	Well                   // all is well
	OnTheWay               // it is not there yet
	Trouble
)

// healthColors are what terminals show.
var healthColors = map[Health]string{Well: green, OnTheWay: yellow, Trouble: red}

// Summary is a pod in the words of `kubectl get pods`.
type Summary struct {
	Ready, Word, Restarts, Age string
	Health                     Health
}

// Summarize returns how a pod is at now.
func Summarize(p *v1.Pod, now time.Time) Summary {
	word, starting := startingWord(p)
	if !starting {
		word = runningWord(p)
	}
	if p.DeletionTimestamp != nil {
		word = "Terminating"
	}
	ready, total := readiness(p)
	return Summary{
		Ready:    fmt.Sprintf("%d/%d", ready, total),
		Word:     word,
		Restarts: restarts(p, starting, now),
		Age:      age(p, now),
		Health:   HealthOf(word, ready == total),
	}
}

// startingWord returns how far the init containers are, while they are not done. A sidecar of a pod that has
// ended was stopped with it, and says nothing of it (kubectl: the same).
func startingWord(p *v1.Pod) (word string, starting bool) {
	for i, c := range p.Spec.InitContainers {
		s, ok := StatusOf(p.Status.InitContainerStatuses, c.Name)
		if !ok {
			if len(p.Status.InitContainerStatuses) == 0 {
				return "", false // no init container has a status yet
			}
			return fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers)), true
		}
		t := s.State.Terminated
		switch {
		case t != nil && t.ExitCode == 0, defaults.IsSidecar(&c) && (hasEnded(p) || s.Started != nil && *s.Started):
			continue
		case t != nil:
			return "Init:" + EndWord(t), true
		case Waits(s):
			return "Init:" + s.State.Waiting.Reason, true
		default:
			return fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers)), true
		}
	}
	return "", false
}

func hasEnded(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// runningWord returns the word of the first container in trouble, else of the pod itself.
func runningWord(p *v1.Pod) string {
	waiting, ended, running := "", "", false
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			waiting = worst(waiting, s.State.Waiting.Reason)
		case s.State.Terminated != nil:
			ended = worst(ended, EndWord(s.State.Terminated))
		case s.State.Running != nil && s.Ready:
			running = true
		}
	}
	switch {
	case p.Status.Reason != "":
		return p.Status.Reason
	case waiting != "":
		return waiting
	case ended == "Completed" && running && PodReady(p):
		return "Running"
	case ended == "Completed" && running:
		return "NotReady"
	case ended != "":
		return ended
	default:
		return cmp.Or(string(p.Status.Phase), "Unknown")
	}
}

// worst returns the word that tells more: the first one that is not the usual.
func worst(had, word string) string {
	switch had {
	case "", "ContainerCreating", "PodInitializing", "Completed":
		return word
	}
	return had
}

// EndWord returns how a container ended.
func EndWord(t *v1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	case t.ExitCode == 0:
		return "Completed"
	default:
		return fmt.Sprintf("ExitCode:%d", t.ExitCode)
	}
}

// Waits reports whether a container waits for something worth printing.
func Waits(s v1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing"
}

func StatusOf(all []v1.ContainerStatus, name string) (v1.ContainerStatus, bool) {
	for _, s := range all {
		if s.Name == name {
			return s, true
		}
	}
	return v1.ContainerStatus{}, false
}

func PodReady(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// readiness counts regular containers and sidecars.
func readiness(p *v1.Pod) (ready, total int) {
	count := func(statuses []v1.ContainerStatus, name string) {
		total++
		if s, ok := StatusOf(statuses, name); ok && s.Ready && s.State.Running != nil {
			ready++
		}
	}
	for _, c := range p.Spec.Containers {
		count(p.Status.ContainerStatuses, c.Name)
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; defaults.IsSidecar(c) {
			count(p.Status.InitContainerStatuses, c.Name)
		}
	}
	return ready, total
}

// restarts returns the number of restarts of the init containers while these run, then of the
// regular ones and sidecars, and when the last one was.
func restarts(p *v1.Pod, starting bool, now time.Time) string {
	statuses := p.Status.ContainerStatuses
	if starting {
		statuses = nil
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if s, ok := StatusOf(p.Status.InitContainerStatuses, c.Name); ok && (starting || defaults.IsSidecar(c)) {
			statuses = append(statuses[:len(statuses):len(statuses)], s)
		}
	}
	n := int32(0)
	var last metav1.Time
	for _, s := range statuses {
		n += s.RestartCount
		if t := s.LastTerminationState.Terminated; t != nil && KnownTime(t.FinishedAt.Time, now) && last.Before(&t.FinishedAt) {
			last = t.FinishedAt
		}
	}
	if n == 0 || last.IsZero() {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d (%s ago)", n, Ago(last.Time, now))
}

func age(p *v1.Pod, now time.Time) string {
	since := p.CreationTimestamp
	if since.IsZero() && p.Status.StartTime != nil {
		since = *p.Status.StartTime
	}
	if since.IsZero() {
		return ""
	}
	return Ago(since.Time, now)
}

// HealthOf returns what a pod's word means.
func HealthOf(word string, ready bool) Health {
	switch strings.TrimPrefix(word, "Init:") {
	case "Completed", "Succeeded", status.ReasonStopped:
		return Over
	case "Running":
		if ready {
			return Well
		}
		return OnTheWay
	case "Pending", "ContainerCreating", "PodInitializing", "NotReady", "Terminating", "WaitingForPods", "UpdateWaits", "RestartingAllContainers":
		return OnTheWay
	}
	if n, _, ok := strings.Cut(strings.TrimPrefix(word, "Init:"), "/"); ok && n != "" {
		return OnTheWay
	}
	return Trouble
}
