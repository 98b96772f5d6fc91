package agent

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

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
	file := filepath.Join(r.dir, "status", "pods", "default_web-n.json")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
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
	answer, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	answer.Close()
	r.stop()
}
