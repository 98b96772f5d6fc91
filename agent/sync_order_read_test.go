package agent

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri/critest"
	"monopod/manifests"
)

// A disk that does not answer keeps the held pod unreported, and no other pod from
// starting.
func TestTheLoopDoesNotWaitForStatusFiles(t *testing.T) {
	started := make(chan struct{})
	r := &rig{T: t, Runtime: critest.New(t), dir: t.TempDir(), log: &lines{}}
	r.mangle = func(args, reply any) {
		if _, is := args.(*rt.StartContainerRequest); is && reply != nil {
			close(started)
		}
	}
	r.AddImage("img:1")
	r.start()
	answer := make(chan struct{})
	r.sync.previous = func(string) (*v1.Pod, bool) { <-answer; return nil, false }
	var s manifests.Snapshot
	for _, doc := range []string{after("web", "db", "img:1"), manifest("other", "img:1")} {
		pods, _ := manifests.Decode("/m/0.yaml", []byte(doc), r.options)
		s.Pods = append(s.Pods, pods...)
	}
	r.offers <- s
	select {
	case <-started:
	case <-time.After(time.Minute):
		t.Error("the other pod does not start")
	}
	if _, reported := r.store.Pod("default/web-n"); reported {
		t.Error("the held pod is reported before its last status is known")
	}
	close(answer)
	r.stop()
}
