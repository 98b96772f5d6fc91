package pleg

import (
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/manifests"
)

// Counts returns the counts of the last listing.
func (l *Lister) Counts() counts {
	l.index.mu.RLock()
	defer l.index.mu.RUnlock()
	return countListed(l.index.pods)
}

// counts are the numbers of the agent's pods and containers in the runtime.
type counts struct {
	Pods       int            // pods with a ready sandbox
	Containers map[string]int // by state, in the kubelet's words
}

// containerStates are the kubelet's words for the runtime's states.
var containerStates = map[rt.ContainerState]string{
	rt.ContainerState_CONTAINER_RUNNING: "running", rt.ContainerState_CONTAINER_EXITED: "exited",
	rt.ContainerState_CONTAINER_CREATED: "created", rt.ContainerState_CONTAINER_UNKNOWN: "unknown",
}

func countListed(pods map[manifests.Key]*Listed) counts {
	t := counts{Containers: map[string]int{}}
	for _, state := range containerStates {
		t.Containers[state] = 0
	}
	for _, p := range pods {
		for _, s := range p.Sandboxes {
			if s.State == rt.PodSandboxState_SANDBOX_READY {
				t.Pods++
				break
			}
		}
		for _, c := range p.Containers {
			t.Containers[containerStates[c.State]]++
		}
	}
	return t
}
