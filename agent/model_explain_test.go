package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/status"
	"monopod/manifests"
)

// explainWithin is how long a pod may wait before it says what for.
const explainWithin = 30 * time.Second

// explained checks that each pod that does not run says why: with a reason and a
// message of the container or of the pod, or with an event.
func (w *walk) explained() {
	w.Helper()
	if !w.watch.Up() { // which is said of the node: pods do not say that they wait for the runtime
		if !strings.Contains(w.log.String(), "runtime does not answer; waiting for it") {
			w.Fatal("it is not said that the runtime does not answer")
		}
		return
	}
	before := w.unexplained()
	if len(before) == 0 {
		return
	}
	w.after(explainWithin + time.Second)
	w.reap()
	if !w.up {
		return
	}
	now := w.unexplained()
	for what, said := range before {
		if now[what] == said {
			w.Fatalf("for %s: %s", explainWithin, said)
		}
	}
}

// decided tells what the loop has decided of each name.
func (w *walk) decided() (text string) {
	for key, r := range w.sync.pods.all {
		text += fmt.Sprintf("%s: %s; refused %v, lacks %q", key, r.Now, r.Now.Refused, r.Prepared.Lacks)
		if r.Offered != nil {
			text += fmt.Sprintf("; offered %.8s", r.Offered.Digest)
		}
		if t := r.Trial; t != nil && t.Tried != nil {
			text += fmt.Sprintf("; on trial %.8s after %.8s, safe %v, unfit %v, stuck %q", t.Tried.Digest, t.Former.Digest, t.Safe, t.Unfit, t.Stuck)
		}
		text += "\n"
	}
	return text
}

// unexplained returns containers that wait and do not say what for, by what they are.
func (w *walk) unexplained() map[string]string {
	out := map[string]string{}
	for key, p := range w.offered {
		reported, ok := w.store.Pod(key.String())
		if !ok {
			out[key.String()] = fmt.Sprintf("%s has no status", key)
			continue
		}
		p = w.asKept(p, reported)
		st := &reported.Status
		if st.Phase == v1.PodFailed || st.Phase == v1.PodSucceeded || reported.UID != p.UID {
			continue
		}
		for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
			if !saysWhy(p, st, &c) && !w.warned(reported.Name) {
				out[key.String()+"/"+c.Name] = fmt.Sprintf("%s/%s does not run and does not say why: %+v\nof %+v", key, c.Name, c.State, *st)
			}
		}
	}
	return out
}

// warned reports whether there was lately a warning about a pod.
func (w *walk) warned(pod string) (lately bool) {
	w.events.List("").Each(func(e *v1.Event) bool {
		lately = e.InvolvedObject.Name == pod && e.Type == v1.EventTypeWarning && e.Message != "" && time.Since(e.LastTimestamp.Time) < 10*time.Minute
		return !lately
	})
	return lately
}

// saysWhy reports whether a container runs or the status says what it waits for. The
// kubelet's reasons of containers that are next, or not next yet, have no message:
// then the pod has, or a container before this one.
func saysWhy(p *manifests.Pod, st *v1.PodStatus, c *v1.ContainerStatus) bool {
	wt := c.State.Waiting
	switch {
	case wt == nil:
		return c.State.Running != nil || c.State.Terminated != nil
	case wt.Reason == "":
		return false
	case wt.Message != "" || wt.Reason == status.ReasonStopped: // the owner's own wish
		return true
	case wt.Reason == st.Reason: // nothing of the pod is to run, which it says itself
		return st.Message != ""
	case wt.Reason != "ContainerCreating" && wt.Reason != "PodInitializing":
		return false
	}
	for _, c := range st.Conditions {
		if c.Type == v1.PodReadyToStartContainers && c.Status == v1.ConditionFalse && c.Reason != "" && c.Message != "" {
			return true
		}
	}
	for _, other := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if other.Name == c.Name {
			continue
		}
		inits := slices.ContainsFunc(p.Spec.InitContainers, func(i v1.Container) bool { return i.Name == other.Name })
		if inits && (other.State.Running != nil || other.State.Waiting != nil && other.State.Waiting.Message != "") {
			return true
		}
	}
	return false
}
