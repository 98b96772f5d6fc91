package update

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
)

// ReasonRolledBack is the reason of the event about a version that did not become or
// stay ready, and of which the former version takes the place again.
const ReasonRolledBack = "UpdateRolledBack"

// Limits is what is asked of a version that took the place of one that ran.
type Limits struct {
	Within time.Duration // it must be ready after it started; 0: no matter
	Stable time.Duration // it must then stay ready
}

// LimitsOf returns the limits of a version: as its annotation says, else as the settings.
func LimitsOf(p *v1.Pod, within, stable time.Duration) Limits {
	if own, said, _ := decode.UpdateHealth(p); said {
		within = own
	}
	return Limits{within, stable}
}

// Health is what is known of a version that runs.
type Health struct {
	Seen              bool // nothing of former versions is left
	Pulling           bool // no container of it was made yet, and images are being pulled
	Ready             bool // or, of a pod that is to end, all containers run or have succeeded
	Succeeded, Failed bool // it has ended
	Restarts          int32
}

// HealthOf returns the health of a pod by its status; nil: it has none yet. ready says
// whether it is ready.
func HealthOf(p *v1.Pod, st *v1.PodStatus, ready bool) Health {
	if st == nil {
		return Health{Seen: true}
	}
	h := Health{Seen: true, Ready: ready, Succeeded: st.Phase == v1.PodSucceeded, Failed: st.Phase == v1.PodFailed}
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		h.Restarts += c.RestartCount
	}
	if p.Spec.RestartPolicy != v1.RestartPolicyAlways && st.Phase == v1.PodRunning {
		h.Ready = ready || !slices.ContainsFunc(st.ContainerStatuses, func(c v1.ContainerStatus) bool { return !c.Ready && !succeeded(c) })
	}
	return h
}

func succeeded(c v1.ContainerStatus) bool {
	return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
}

// Watch is how far the watch over a version is. The zero Watch has not started.
type Watch struct {
	Spent    time.Duration // that previous agents saw it not ready
	Since    time.Time     // it runs, as far as this agent has seen; zero: it was not seen
	Ready    time.Time     // since then it is ready; zero: it was not
	Restarts int32         // until then
}

// Outcome is what a watch comes to.
type Outcome int

const (
	Watching Outcome = iota
	Healthy          // the version is the one that later ones may go back to
	RollBack         // the former version comes back
)

// Look goes on with the watch. It returns why the version is to go, and when to look
// again at the latest, if nothing of its health changes.
func (w *Watch) Look(l Limits, h Health, now time.Time) (_ Outcome, why string, again time.Time) {
	switch {
	case l.Within == 0 || h.Seen && h.Succeeded:
		return Healthy, "", again
	case !h.Seen:
		return Watching, "", again
	case w.Since.IsZero() || h.Pulling:
		w.Since = now
	}
	switch {
	case h.Failed:
		return RollBack, "it has failed", again
	case w.Ready.IsZero() && !h.Ready:
		again = w.Since.Add(l.Within - w.Spent)
		if !h.Pulling && !now.Before(again) {
			return RollBack, fmt.Sprintf("it was not ready within %s", l.Within), again
		}
		return Watching, "", again
	case w.Ready.IsZero():
		w.Ready, w.Restarts = now, h.Restarts
	case h.Restarts > w.Restarts:
		return RollBack, fmt.Sprintf("it was ready, and a container restarted within %s", l.Stable), again
	case !h.Ready:
		return RollBack, fmt.Sprintf("it was ready, and did not stay so for %s", l.Stable), again
	}
	if again = w.Ready.Add(l.Stable); !now.Before(again) {
		return Healthy, "", again
	}
	return Watching, "", again
}

// SpentAt returns for how long the version was seen not ready.
func (w *Watch) SpentAt(now time.Time) time.Duration {
	switch {
	case w.Since.IsZero():
		return w.Spent
	case !w.Ready.IsZero():
		now = w.Ready
	}
	return w.Spent + max(now.Sub(w.Since), 0)
}

// Suspend lets a time pass that does not count, as nothing was seen meanwhile.
func (w *Watch) Suspend(d time.Duration) {
	for _, t := range []*time.Time{&w.Since, &w.Ready} {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
}

// Trouble says which containers of a pod have ended or are not ready; "": none.
func Trouble(st *v1.PodStatus) string {
	var all []string
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if text := trouble(c); text != "" {
			all = append(all, fmt.Sprintf("container %s %s", c.Name, text))
		}
	}
	if len(all) == 0 {
		return st.Message
	}
	return strings.Join(all, ", ")
}

func trouble(c v1.ContainerStatus) string {
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	switch {
	case ended != nil && (ended.ExitCode != 0 || c.RestartCount > 0):
		return fmt.Sprintf("ended with exit code %d", ended.ExitCode)
	case c.Ready || ended != nil:
		return ""
	case c.State.Waiting != nil:
		return "waits: " + c.State.Waiting.Reason
	}
	return "is not ready"
}

// Pin returns the pod with the images that its containers ran, by their names, and
// whether all of them are known. Those need no registry. Images of volumes stay as named.
func Pin(p *v1.Pod, images map[string]string) (*v1.Pod, bool) {
	out := p.DeepCopy()
	pin := func(c *v1.Container) bool {
		ref := images[c.Name]
		if ref != "" {
			c.Image, c.ImagePullPolicy = ref, v1.PullIfNotPresent
		}
		return ref != ""
	}
	for k := range out.Spec.InitContainers {
		pin(&out.Spec.InitContainers[k])
	}
	all := true
	for k := range out.Spec.Containers {
		all = pin(&out.Spec.Containers[k]) && all
	}
	return out, all
}

// ImagesOf returns the images that containers run or ran, by digest or id.
func ImagesOf(st *v1.PodStatus) map[string]string {
	images := map[string]string{}
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if c.ImageID != "" {
			images[c.Name] = c.ImageID
		}
	}
	return images
}
