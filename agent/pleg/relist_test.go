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

func TestWhatMayNameAFile(t *testing.T) {
	for name, want := range map[string]bool{
		"web": true, "web-1.a": true, "A": true, "0": true, "a--b": true, "a..b": true,
		"": false, ".": false, "..": false, "-a": false, "a-": false, ".a": false, "a.": false,
		"a/b": false, "../a": false, "a_b": false, "a b": false, "a\n": false, "a\x00": false, "\u00e9": false,
	} {
		if got := isFileName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
