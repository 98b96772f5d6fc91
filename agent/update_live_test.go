package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/node"
	"monopod/agent/print"
)

// offline makes the pulls of an image fail until online.
func (r *rig) offline(image string) { r.OnPull(image, 0, errors.New("no route to host")) }
func (r *rig) online(image string)  { r.OnPull(image, 0, nil) }

// stopsNothing runs do and checks that it stops nothing.
func (r *rig) stopsNothing(do func()) {
	r.Helper()
	before := r.containerIDs()
	r.ForgetCalls()
	do()
	if n := r.Count("StopContainer") + r.Count("StopPodSandbox"); n > 0 || !slices.Equal(r.containerIDs(), before) {
		r.Errorf("%d stops; there was %v and is %v", n, before, r.containerIDs())
	}
}

func (r *rig) containerIDs() (ids []string) {
	for _, c := range r.Containers() {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids
}

// words are what ps, describe and wait say of a pod.
func (r *rig) words(key string) string {
	r.Helper()
	p, ok := r.store.Pod(key)
	if !ok {
		r.Fatalf("%s is not reported", key)
	}
	return strings.Join(print.PodWords([]v1.Pod{*p}, time.Now()), "|")
}

// updateWaits checks that version 1 of the pod runs, is ready, and that another waits.
func (r *rig) updateWaits(why string) {
	r.Helper()
	r.runsImage("img:1")
	if st := r.status("default/web-n"); st.Phase != v1.PodRunning || !st.ContainerStatuses[0].Ready {
		r.Errorf("status %+v", st)
	}
	if words := r.words("default/web-n"); !strings.Contains(words, "update waits: ") || !strings.Contains(words, why) {
		r.Errorf("it says %q, not that the update waits: %s", words, why)
	}
}

// replaced checks that another image runs and that nothing waits.
func (r *rig) replaced(image string) {
	r.Helper()
	r.runsImage(image)
	if words := r.words("default/web-n"); words != "" {
		r.Errorf("it says %q", words)
	}
}

func (r *rig) runsImage(image string) {
	r.Helper()
	r.expect("default/web-n/c")
	for _, c := range r.Containers() {
		if got := c.Config.Image.UserSpecifiedImage; c.Pod == "web-n" && c.State == rt.ContainerState_CONTAINER_RUNNING && got != image {
			r.Errorf("%s runs, want %s", got, image)
		}
	}
}

// waitEvents counts the events that tell that an update waits, and that it goes on.
func (r *rig) waitEvents() (waits, on int) {
	r.events.List("").Each(func(e *v1.Event) bool {
		switch e.Reason {
		case "UpdateWaits":
			waits += int(max(e.Count, 1))
		case "UpdateContinues":
			on += int(max(e.Count, 1))
		}
		return true
	})
	return waits, on
}

func TestAVersionRunsUntilTheNextHasItsImages(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(manifest("web", "img:1"))
		r.stopsNothing(func() {
			r.want(manifest("web", "img:9"))
			r.after(time.Hour)
		})
		r.updateWaits(`image img:9`)
		r.updateWaits("no route to host")
		if waits, on := r.waitEvents(); waits != 1 || on != 0 {
			r.Errorf("%d events say that it waits, %d that it goes on:\n%s", waits, on, strings.Join(r.happened("web-n"), "\n"))
		}
		if f := r.store.Manifests().Files; len(f) != 1 || !f[0].Held {
			r.Errorf("files %+v", f)
		}
		r.online("img:9")
		r.after(10 * time.Minute)
		r.replaced("img:9")
		if waits, on := r.waitEvents(); waits != 1 || on != 1 {
			r.Errorf("%d events say that it waits, %d that it goes on", waits, on)
		}
		if f := r.store.Manifests().Files; len(f) != 1 || f[0].Held {
			r.Errorf("files %+v", f)
		}
	})
}

// The image that was pulled for the update is used for it: no pull stands between the
// stop of one version and the start of the next.
func TestAnImageIsPulledOnceForAnUpdate(t *testing.T) {
	live(t, func(r *rig) {
		always := func(image string) string {
			return strings.Replace(manifest("web", image), "image:", "imagePullPolicy: Always, image:", 1)
		}
		r.want(always("img:1"))
		r.ForgetCalls()
		r.want(always("img:2"))
		r.after(time.Minute)
		r.replaced("img:2")
		if n := r.Count("PullImage"); n != 1 {
			r.Errorf("%d pulls", n)
		}
	})
}

func TestAKilledAgentChangesNothingOfAnUpdateThatWaits(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(manifest("web", "img:1"))
		r.want(manifest("web", "img:9"))
		r.stopsNothing(func() {
			for range 3 {
				r.kill()
				r.start()
				r.want(manifest("web", "img:9"))
				r.after(time.Minute)
			}
		})
		r.updateWaits(`image img:9`)
		r.online("img:9")
		r.after(10 * time.Minute)
		r.replaced("img:9")
	})
}

func TestARebootOfflineStartsTheVersionThatRan(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(manifest("web", "img:1"))
		r.want(manifest("web", "img:9"))
		for k := range 3 {
			r.kill()
			r.Reboot()
			if k == 2 { // the runtime forgets all at a reboot
				for _, b := range r.Sandboxes() {
					r.RemoveSandboxBehindBack(b.ID)
				}
			}
			r.start()
			r.want(manifest("web", "img:9"))
			r.after(10 * time.Minute)
			r.expect("default/web-n/c")
			if words := r.words("default/web-n"); !strings.Contains(words, `update waits: image img:9`) {
				r.Errorf("it says %q", words)
			}
		}
		r.online("img:9")
		r.after(10 * time.Minute)
		r.replaced("img:9")
	})
}

func TestAnUpdateThatDoesNotFitLeavesWhatRuns(t *testing.T) {
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "2", "pods", "110") }, func(r *rig) {
		r.want(cpuPod("web", "img:1", 2))
		r.stopsNothing(func() {
			r.want(cpuPod("web", "img:2", 3))
			r.after(time.Hour)
		})
		r.updateWaits("Node didn't have enough resource: cpu, requested: 3, used: 0, capacity: 2")
		told := 0
		r.events.List("").Each(func(e *v1.Event) bool {
			if e.Type == v1.EventTypeWarning {
				told += int(max(e.Count, 1))
			}
			return true
		})
		if told != 1 {
			r.Errorf("%d events tell that it waits", told)
		}
		r.want(cpuPod("web", "img:2", 2)) // what version 1 has counts as free
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

// What another pod frees lets in an update that has its images.
func TestAnUpdateFollowsOnceAnotherPodMakesRoom(t *testing.T) {
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "2", "pods", "110") }, func(r *rig) {
		r.want(cpuPod("web", "img:1", 1), cpuPod("other", "img:1", 1))
		r.want(cpuPod("web", "img:2", 2), cpuPod("other", "img:1", 1))
		r.after(time.Minute)
		r.want(cpuPod("web", "img:2", 2))
		r.after(time.Minute)
		r.replaced("img:2")
		if _, on := r.waitEvents(); on != 1 {
			r.Errorf("%d events tell that it goes on", on)
		}
	})
}

func cpuPod(name, image string, cpus int) string {
	return strings.Replace(manifest(name, image), "image:", fmt.Sprintf("resources: {requests: {cpu: %d}}, image:", cpus), 1)
}

func TestAnUpdateTakesThePortOfTheVersionBefore(t *testing.T) {
	live(t, func(r *rig) {
		r.want(withPort("web", "img:1", 80))
		r.want(withPort("web", "img:2", 80))
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

// Two pods that exchange their ports stop once both can start again.
func TestPodsThatExchangePortsWaitForTheirImages(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(withPort("web", "img:1", 80), withPort("b", "img:1", 81))
		r.stopsNothing(func() {
			r.want(withPort("web", "img:9", 81), withPort("b", "img:2", 80))
			r.after(time.Hour)
		})
		r.online("img:9")
		r.after(10 * time.Minute)
		r.expect("default/b-n/c", "default/web-n/c")
		for _, c := range r.Containers() {
			if c.Config.Image.UserSpecifiedImage == "img:1" {
				r.Errorf("%s has not moved", c.Pod)
			}
		}
		r.says(0, "its manifest is gone")
	})
}

func TestANewerVersionTakesThePlaceOfTheOneThatWaits(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:8")
		r.offline("img:9")
		r.want(manifest("web", "img:1"))
		r.stopsNothing(func() {
			r.want(manifest("web", "img:8"))
			r.after(time.Minute)
			r.want(manifest("web", "img:9"))
			r.after(time.Minute)
		})
		r.updateWaits(`image img:9`)
		r.online("img:8")
		r.after(time.Hour)
		r.updateWaits(`image img:9`)
		r.want(manifest("web", "img:2"))
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

func TestAnEditTakenBackEndsTheWait(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(manifest("web", "img:1"))
		r.stopsNothing(func() {
			r.want(manifest("web", "img:9"))
			r.after(time.Minute)
			r.want(manifest("web", "img:1"))
			r.online("img:9")
			r.after(time.Hour)
		})
		r.replaced("img:1")
		if f := r.store.Manifests().Files; len(f) != 1 || f[0].Held {
			r.Errorf("files %+v", f)
		}
	})
}

func TestARemovalEndsAnUpdateThatWaits(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(manifest("web", "img:1"))
		r.want(manifest("web", "img:9"))
		r.after(time.Minute)
		r.want()
		r.online("img:9")
		r.after(time.Hour)
		r.expect()
		if left := len(r.Sandboxes()) + len(r.store.Pods()); left > 0 {
			r.Errorf("%d things are left", left)
		}
	})
}
