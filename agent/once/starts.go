package once

import (
	"fmt"
	"regexp"
	"sync"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/wake"
	"monopod/manifests"
)

// Starts counts the starts that failed with one answer in a row: a status has only the last
// answer. The agent reports them, and a run reads them. Any goroutine may use it.
type Starts struct {
	mu      sync.Mutex
	failed  map[string]map[string]failedStart // by pod and container; "": the pod itself
	changed wake.Slot
}

// failedStart is the last start that failed.
type failedStart struct {
	times  int    // in a row, with this answer
	reason string // the kubelet's word for what failed
	text   string // the answer
	like   string // what equal answers have in common
	done   string // what failed: created or started
	total  int    // of all failures, also with other answers or before a success
}

// NewStarts returns empty Starts.
func NewStarts() *Starts {
	return &Starts{failed: map[string]map[string]failedStart{}, changed: wake.New()}
}

// varies is what differs in two equal answers: ids of what was made and lost, attempts, addresses,
// ports, times. Of a path, only the part with a digit is.
var varies = regexp.MustCompile(`[\w.:+-]*[0-9][\w.:+-]*|[0-9a-f]{8,}`)

// Failed records a start of a container, or of a pod if container is "", that failed for the nth
// time in a row: the first time implies that those before had succeeded.
func (f *Starts) Failed(pod manifests.Key, container string, nth int, reason, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.failed[pod.String()]
	if of == nil {
		of = map[string]failedStart{}
		f.failed[pod.String()] = of
	}
	before := of[container]
	now := failedStart{times: 1, reason: reason, text: joinWords(reason, message),
		like: varies.ReplaceAllString(reason+": "+message, "#"), done: "created", total: before.total + 1}
	if reason == "RunContainerError" {
		now.done = "started" // there is a container, and the runtime cannot start it
	}
	if nth > 1 && before.like == now.like {
		now.times = before.times + 1
	}
	of[container] = now
	f.changed.Wake()
}

// forget forgets the failures in a row of what was made since.
func (f *Starts) forget(pod *v1.Pod, container string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if last, ok := f.failed[key(pod)][container]; ok {
		f.failed[key(pod)][container] = failedStart{total: last.total}
	}
}

// of returns the last failed starts of a container, or of a pod, with one answer.
func (f *Starts) of(pod *v1.Pod, container string) failedStart {
	if f == nil {
		return failedStart{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed[key(pod)][container]
}

// total returns how often the start of a container, or of a pod, has failed in all.
func (f *Starts) total(pod *v1.Pod, container string) int { return f.of(pod, container).total }

// words returns how often in a row it failed, and with which answer.
func (s *failedStart) words() string {
	return fmt.Sprintf("failed to be %s %d times in a row: %s", s.done, s.times, s.text)
}
