package agent

import (
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/manifests"
)

// tally is how many of ours the runtime has.
type tally struct {
	pods       int            // with a sandbox that is ready
	containers map[string]int // by state, in the kubelet's words
}

// containerStates are the kubelet's words for them.
var containerStates = map[rt.ContainerState]string{
	rt.ContainerState_CONTAINER_RUNNING: "running", rt.ContainerState_CONTAINER_EXITED: "exited",
	rt.ContainerState_CONTAINER_CREATED: "created", rt.ContainerState_CONTAINER_UNKNOWN: "unknown",
}

func tallyOf(pods map[manifests.Key]*listed) *tally {
	t := &tally{containers: map[string]int{}}
	for _, state := range containerStates {
		t.containers[state] = 0
	}
	for _, p := range pods {
		for _, s := range p.sandboxes {
			if s.State == rt.PodSandboxState_SANDBOX_READY {
				t.pods++
				break
			}
		}
		for _, c := range p.containers {
			t.containers[containerStates[c.State]]++
		}
	}
	return t
}
