package pleg

import (
	"crypto/sha256"
	"fmt"
	"testing"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// listedIn is what a listing has of containers that are all in one state.
func listedIn(state rt.ContainerState, ids ...string) *Listed {
	p := &Listed{Sandboxes: []*rt.PodSandbox{{Id: "b"}}}
	for _, id := range ids {
		p.Containers = append(p.Containers, &rt.Container{Id: id, State: state})
	}
	return p
}

func TestContainersThatChangeTogetherAreSeen(t *testing.T) {
	states := []rt.ContainerState{rt.ContainerState_CONTAINER_CREATED, rt.ContainerState_CONTAINER_RUNNING, rt.ContainerState_CONTAINER_EXITED}
	for k := range 3000 {
		var ids []string
		for n := range 2 + k%5 {
			ids = append(ids, fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, k, n))))
		}
		seen := map[uint64]bool{}
		for _, s := range states {
			seen[listedIn(s, ids...).fingerprint()] = true
		}
		if len(seen) != len(states) {
			t.Fatalf("a change of the state of all of %v is not seen", ids)
		}
	}
}

func TestTheOrderOfAListingDoesNotMatter(t *testing.T) {
	running := rt.ContainerState_CONTAINER_RUNNING
	if listedIn(running, "a", "b").fingerprint() != listedIn(running, "b", "a").fingerprint() {
		t.Error("it does")
	}
}
