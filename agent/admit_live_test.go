package agent

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/node"
	"monopod/agent/worker"
	"monopod/cri/critest"
	"monopod/manifests"
)

// withPort is a pod that takes a port of the machine.
func withPort(name, image string, port int, extra ...string) string {
	m := manifest(name, image, extra...)
	return strings.Replace(m, "image: \""+image+"\"", fmt.Sprintf("image: %q, ports: [{containerPort: 80, hostPort: %d}]", image, port), 1)
}

// wantRefused checks that a pod waits, as the kubelet reports it.
func (r *rig) wantRefused(key, reason string) {
	r.Helper()
	st := r.status(key)
	if st.Phase != v1.PodFailed || st.Reason != reason || !strings.HasPrefix(st.Message, "Pod was rejected: ") {
		r.Errorf("%s is reported as %s, %q, %q; want it refused for %s", key, st.Phase, st.Reason, st.Message, reason)
	}
	if st.StartTime == nil || st.QOSClass == "" || len(st.Conditions)+len(st.ContainerStatuses) > 0 {
		r.Errorf("status %+v", st)
	}
}

func TestAPodThatDoesNotFitWaitsUntilThePortIsFree(t *testing.T) {
	live(t, func(r *rig) {
		first, second := withPort("a", "img:1", 80), withPort("b", "img:1", 80)
		r.Program("c", critest.Runs().IgnoresTerm()) // the port is free when the pod is gone, not when it is told to go
		r.want(first, second)
		r.expect("default/a-n/c")
		r.wantRefused("default/b-n", "NodePorts")
		r.after(time.Minute)
		if n := r.Count("RunPodSandbox"); n != 1 {
			r.Errorf("%d sandboxes were made", n)
		}
		r.want(second)
		r.after(20 * time.Second)
		r.wantRefused("default/b-n", "NodePorts")
		r.after(11 * time.Second)
		r.expect("default/b-n/c")
		if st := r.status("default/b-n"); st.Phase != v1.PodRunning || st.Reason != "" {
			r.Errorf("status %+v", st)
		}
	})
}

func TestAnotherAgentKeepsWhoRunsWhereItIs(t *testing.T) {
	live(t, func(r *rig) {
		r.want(withPort("z", "img:1", 80))
		before := r.made()
		r.stop()
		r.start()
		r.want(withPort("z", "img:1", 80), withPort("a", "img:1", 80))
		r.after(time.Minute)
		r.expect("default/z-n/c")
		r.wantRefused("default/a-n", "NodePorts")
		if r.made() != before {
			r.Errorf("%d calls more", r.made()-before)
		}
	})
}

// What was admitted once is not asked again, even if the node is another now.
func TestARunningPodOutlivesTheLossOfWhatItWasAdmittedFor(t *testing.T) {
	labels := map[string]string{"disk": "ssd"}
	liveOn(t, func(f *node.Facts) { f.Labels = labels }, func(r *rig) {
		m := manifest("web", "img:1", "nodeSelector: {disk: ssd}")
		r.want(m)
		r.stop()
		labels = nil
		r.start()
		r.want(m)
		r.after(time.Minute)
		r.expect("default/web-n/c")
	})
}

func TestARefusedPodIsForgottenWithItsManifest(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1", "nodeSelector: {disk: ssd}"))
		r.wantRefused("default/web-n", "NodeAffinity")
		r.want()
		if pods := r.store.Pods(); len(pods) > 0 {
			r.Errorf("status of %s is left", pods[0].Name)
		}
		if n := r.sync.table.Len(); n > 0 {
			r.Errorf("%d pods are left", n)
		}
	})
}

func TestARefusedPodRunsOnceItsManifestFits(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1", "nodeSelector: {disk: ssd}"))
		r.want(manifest("web", "img:1"))
		r.expect("default/web-n/c")
	})
}

func TestAnUnfitPodIsRefusedOnceItsPreviousVersionIsGone(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(manifest("web", "img:1"))
		r.want()
		r.want(manifest("web", "img:1", "nodeSelector: {disk: ssd}"))
		r.after(31 * time.Second)
		r.expect()
		r.wantRefused("default/web-n", "NodeAffinity")
	})
}

func TestARetirementIsFinishedThoughTheNextVersionIsUnfit(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(manifest("web", "img:1"))
		r.want()
		r.after(time.Second)
		r.stop()
		r.start()
		// Not a complete one, or the sandbox would be found as one that nobody knows.
		pods, _ := manifests.Decode("/m/0.yaml", []byte(manifest("web", "img:1", "nodeSelector: {disk: ssd}")), manifests.Options{NodeName: "n", NameSuffix: true})
		r.offers <- manifests.Snapshot{Pods: pods}
		r.after(31 * time.Second)
		r.expect()
		r.wantRefused("default/web-n", "NodeAffinity")
	})
}

// A pod that waited began when it was let in, also where another agent did that.
func TestTheTimeOfWaitingIsNoTimeOfRunning(t *testing.T) {
	labels := map[string]string{}
	liveOn(t, func(f *node.Facts) { f.Labels = labels }, func(r *rig) {
		m := manifest("web", "img:1", "nodeSelector: {disk: ssd}")
		r.want(m)
		r.wantRefused("default/web-n", "NodeAffinity")
		r.after(time.Minute)
		r.stop()
		labels = map[string]string{"disk": "ssd"}
		r.start()
		r.want(m)
		if st := r.status("default/web-n"); st.Phase != v1.PodRunning || !st.StartTime.Time.Equal(time.Now()) {
			r.Errorf("status %+v", st)
		}
	})
}

func TestWhatTheRuntimeCanDoIsLearntWhenItAnswers(t *testing.T) {
	live(t, func(r *rig) {
		r.Stop()
		r.stop()
		r.start()
		r.want(manifest("web", "img:1", "securityContext: {supplementalGroupsPolicy: Strict}"))
		if st := r.status("default/web-n"); !strings.Contains(st.Message, "has not answered yet") {
			r.Errorf("status %+v", st)
		}
		r.Resume()
		r.after(2 * time.Second)
		if st := r.status("default/web-n"); strings.Contains(st.Message, "has not answered yet") {
			r.Errorf("status %+v", st)
		}
	})
}

func TestPodsMayExchangeTheirPorts(t *testing.T) {
	live(t, func(r *rig) {
		third := manifest("c", "img:1")
		r.want(withPort("a", "img:1", 80), withPort("b", "img:1", 81), third)
		r.want(withPort("a", "img:1", 81), withPort("b", "img:1", 80), manifest("c", "img:1", "nodeSelector: {disk: ssd}"))
		r.after(time.Minute)
		r.expect("default/a-n/c", "default/b-n/c", "default/c-n/c")
		if n := r.Count("RunPodSandbox"); n != 5 {
			r.Errorf("%d sandboxes were made, want 3 and 2 again", n)
		}
		if n := len(r.sync.pods.agenda.denied); n != 1 {
			r.Errorf("%d pods are refused", n)
		}
	})
}

// Nothing gives its place to others that may not change now; once it may, both do.
func TestPodsExchangeTheirPortsOnceTheGateIsOpen(t *testing.T) {
	live(t, func(r *rig) {
		r.want(withPort("web", "img:1", 80), withPort("b", "img:1", 81))
		r.holds("web", "audit", "")
		r.stopsNothing(func() {
			r.want(withPort("web", "img:2", 81), withPort("b", "img:2", 80))
			r.after(time.Hour)
		})
		r.releases("web")
		r.after(time.Minute)
		r.expect("default/b-n/c", "default/web-n/c")
		for _, c := range r.Containers() {
			if c.Config.Image.UserSpecifiedImage == "img:1" {
				r.Errorf("%s has not moved", c.Pod)
			}
		}
	})
}

// Held in the middle of it, the node would be without both until the hold ends.
func TestPodsThatExchangeTheirPortsStartThoughTheyAreHeldMeanwhile(t *testing.T) {
	for _, row := range []struct {
		name, held string
		restarts   bool // the agent does, then
	}{{"the node", "", false}, {"a pod", "a", false}, {"the node, by an earlier agent", "", true}, {"a pod, by an earlier agent", "a", true}} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("c", critest.Runs().IgnoresTerm())
				r.want(withPort("a", "img:1", 80), withPort("b", "img:1", 81))
				r.want(withPort("a", "img:1", 81), withPort("b", "img:1", 80))
				r.after(5 * time.Second)
				r.holds(row.held, "audit", "")
				if row.restarts {
					r.stop()
					r.start()
					r.want(withPort("a", "img:1", 81), withPort("b", "img:1", 80))
				}
				r.after(time.Minute)
				r.expect("default/a-n/c", "default/b-n/c")
				r.want(withPort("a", "img:1", 82), withPort("b", "img:1", 80), manifest("new", "img:1", "nodeSelector: {disk: ssd}"))
				r.stopsNothing(func() { r.after(time.Hour) })
				r.expect("default/a-n/c", "default/b-n/c")
			})
		})
	}
}

func TestANewVersionTakesOverThePlaceOfTheOld(t *testing.T) {
	live(t, func(r *rig) {
		r.want(withPort("web", "img:1", 80))
		r.want(withPort("web", "img:2", 80))
		r.after(31 * time.Second)
		r.expect("default/web-n/c")
		if c, _ := r.Container("c"); c.Config.Image.UserSpecifiedImage != "img:2" {
			r.Errorf("runs %s", c.Config.Image.UserSpecifiedImage)
		}
	})
}

// The port that a new version gives up is another's only when the old version
// is gone.
func TestAPortGivenUpByAnEditIsFreeWhenTheOldVersionIsGone(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(withPort("a", "img:1", 80), withPort("b", "img:1", 80))
		old := r.sync.last.Pods[0]
		r.want(withPort("a", "img:1", 81), withPort("b", "img:1", 80))
		// What a worker said of an earlier version is no news of this one.
		r.sync.shared.States <- worker.State{Key: old.Key(), UID: old.UID, Generation: r.sync.pods.see(old.Key()).sent.Generation - 1, Cleared: true}
		r.after(20 * time.Second)
		r.wantRefused("default/b-n", "NodePorts")
		r.after(11 * time.Second)
		r.expect("default/a-n/c", "default/b-n/c")
	})
}

func TestAnEditThatDoesNotFitLeavesTheFormerVersionRunning(t *testing.T) {
	live(t, func(r *rig) {
		good, bad := withPort("a", "img:1", 80), withPort("a", "img:2", 81)
		r.want(good, withPort("b", "img:1", 81))
		before := r.made()
		held := func() {
			r.Helper()
			r.after(time.Minute)
			r.expect("default/a-n/c", "default/b-n/c")
			f := r.store.Manifests().Files[0]
			if !f.Held || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "free ports") {
				r.Errorf("file %+v", f)
			}
			if st := r.status("default/a-n"); st.Phase != v1.PodRunning || r.made() != before {
				r.Errorf("status %+v after %d calls more", st, r.made()-before)
			}
		}
		r.want(bad, withPort("b", "img:1", 81))
		held()
		r.stop()
		r.start()
		r.want(bad, withPort("b", "img:1", 81))
		held()
		r.want(bad)
		r.after(31 * time.Second)
		if f := r.store.Manifests().Files[0]; f.Held || len(f.Problems) > 0 {
			r.Errorf("file %+v", f)
		}
		r.after(31 * time.Second)
		r.expect("default/a-n/c")
		if c, _ := r.Container("c"); c.Config.Image.UserSpecifiedImage != "img:2" {
			r.Errorf("runs %s", c.Config.Image.UserSpecifiedImage)
		}
	})
}

func TestAnEditThatIsTakenBackChangesNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		before := r.made()
		r.want(manifest("web", "img:1", "nodeSelector: {disk: ssd}"))
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		if f := r.store.Manifests().Files[0]; r.made() != before || f.Held {
			r.Errorf("%d calls more, file %+v", r.made()-before, f)
		}
	})
}

func TestAPodThatHasEndedTakesNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.ExitsAfter(time.Minute, 0))
		job, next := withPort("job", "img:1", 80, "restartPolicy: Never"), withPort("next", "img:1", 80, "restartPolicy: Never")
		r.want(job, next)
		r.wantRefused("default/next-n", "NodePorts")
		r.after(61 * time.Second)
		r.expect("default/next-n/c")
		r.stop()
		r.start()
		r.want(job, next, withPort("third", "img:1", 80))
		r.wantRefused("default/third-n", "NodePorts")
		r.after(61 * time.Second)
		r.expect("default/third-n/c")
	})
}

func TestANodeThatGrowsIsNoticed(t *testing.T) {
	var cpus atomic.Int64
	cpus.Store(1)
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", fmt.Sprint(cpus.Load()), "pods", "9") }, func(r *rig) {
		r.want(manifest("web", "img:1", "resources: {requests: {cpu: 2}, limits: {cpu: 2}}"))
		r.wantRefused("default/web-n", "OutOfcpu")
		cpus.Store(2)
		r.after(2 * syncTick)
		r.expect("default/web-n/c")
	})
}

func TestWhoCameFirstIsAskedFirst(t *testing.T) {
	live(t, func(r *rig) {
		z := withPort("z", "img:1", 80)
		r.want(withPort("first", "img:1", 80), z)
		// In a Snapshot a pod that did not change keeps the time it was first seen.
		old := r.sync.last.Pods[1]
		r.after(time.Second)
		pods, _ := manifests.Decode("/m/2.yaml", []byte(withPort("a", "img:1", 80)), manifests.Options{NodeName: "n", NameSuffix: true})
		r.offers <- manifests.Snapshot{Complete: true, Pods: append(pods, old)}
		r.after(31 * time.Second)
		r.expect("default/z-n/c")
		r.wantRefused("default/a-n", "NodePorts")
	})
}

func TestARefusedPodIsReportedWhileTheRuntimeIsAwayAndRunsLater(t *testing.T) {
	var cpus atomic.Int64
	cpus.Store(1)
	liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", fmt.Sprint(cpus.Load()), "pods", "9") }, func(r *rig) {
		r.Stop()
		r.after(10 * time.Second)
		r.want(manifest("web", "img:1", "resources: {requests: {cpu: 2}, limits: {cpu: 2}}"))
		r.wantRefused("default/web-n", "OutOfcpu")
		cpus.Store(2)
		r.after(2 * syncTick)
		if st := r.status("default/web-n"); st.Phase != v1.PodPending || st.Reason != "" {
			r.Errorf("status %+v", st)
		}
		r.Resume()
		r.after(2 * time.Second)
		r.expect("default/web-n/c")
	})
}
