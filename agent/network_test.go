package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/pleg"
	"monopod/cri/critest"
)

// noNetwork is what a pod's event and status say while the network is down.
const noNetwork = "the runtime has no network for pods yet: cni plugin not initialized"

func networkDown(r *rig) {
	r.SetCondition(rt.NetworkReady, false, "NetworkPluginNotReady", "cni plugin not initialized")
}

func networkUp(r *rig) { r.SetCondition(rt.NetworkReady, true, "", "") }

func TestPodsWaitForTheNetworkUnlessItIsTheHosts(t *testing.T) {
	liveWith(t, networkDown, func(r *rig) {
		r.want(manifest("web", "img:1"), manifest("host", "img:1", "hostNetwork: true"))
		r.after(time.Minute)
		r.expect("default/host-n/c")
		r.waits("default/web-n", "c", "NetworkNotReady")
		if st := r.status("default/web-n"); st.Phase != v1.PodPending || st.ContainerStatuses[0].State.Waiting.Message != noNetwork {
			r.Errorf("status %+v", st)
		}
		if c := condition0(r.status("default/web-n")); c.Reason != "NetworkNotReady" || c.Message != noNetwork {
			r.Errorf("condition %+v", c)
		}
		if got := r.happened("web-n"); !slices.Equal(got, []string{"Warning NetworkNotReady: " + noNetwork}) {
			r.Errorf("events\n%s", strings.Join(got, "\n"))
		}
		if n := r.Count("RunPodSandbox"); n != 1 {
			r.Errorf("%d sandboxes tried", n)
		}
		networkUp(r)
		r.after(2 * time.Second)
		r.expect("default/host-n/c", "default/web-n/c")
	})
}

func TestPodsRunOnWithoutNetwork(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		networkDown(r)
		r.after(pleg.HealthEvery + time.Second)
		r.want(manifest("web", "img:1"), manifest("late", "img:1"))
		r.waits("default/late-n", "c", "NetworkNotReady")
		r.Exit("default/web-n/c", 1)
		r.after(time.Second)
		r.expect("default/web-n/c")
		r.KillSandbox("web-n")
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.Exit("default/web-n/c", 1)
		r.after(time.Minute)
		r.expect()
		r.waits("default/web-n", "c", "NetworkNotReady")
		networkUp(r)
		r.after(2 * time.Second)
		r.expect("default/late-n/c", "default/web-n/c")
	})
}

// The runtime fails before it says why.
func TestAFailureBeforeTheNetworkIsKnownDelaysNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.settle()
		networkDown(r)
		r.Fault(critest.On("RunPodSandbox").Fail(codes.Unknown, "cni plugin not initialized"))
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.waits("default/web-n", "c", "NetworkNotReady")
		tried := r.Count("RunPodSandbox")
		r.after(time.Minute)
		if more := r.Count("RunPodSandbox") - tried; tried == 0 || more > 0 {
			r.Errorf("tried %d times, and %d times more", tried, more)
		}
		r.ClearFaults()
		networkUp(r)
		r.after(2 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestANetworkThatIsNotKnownIsNotWaitedFor(t *testing.T) {
	silent := func(_, reply any) {
		if s, ok := reply.(*rt.StatusResponse); ok && s.Status != nil {
			s.Status.Conditions = nil
		}
	}
	liveWith(t, func(r *rig) { networkDown(r); r.mangle = silent }, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.expect("default/web-n/c")
	})
}

// The runtime is asked more often only as long as there is no network.
func TestAReadyNetworkIsNotAskedForOften(t *testing.T) {
	live(t, func(r *rig) {
		asked := func() int {
			before := r.Count("Status")
			r.after(time.Minute)
			return r.Count("Status") - before
		}
		if n := asked(); n > 7 {
			r.Errorf("asked %d times a minute", n)
		}
		networkDown(r)
		r.after(pleg.HealthEvery)
		if n := asked(); n < 25 || n > 40 {
			r.Errorf("asked %d times a minute without network", n)
		}
		networkUp(r)
		r.after(pleg.HealthEvery)
		if n := asked(); n > 7 {
			r.Errorf("asked %d times a minute with a network again", n)
		}
	})
}
