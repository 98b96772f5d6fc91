package gc

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/metrics"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/cri/critest"
)

// In the root dir of a kubelet are the volumes of its other pods, too, which run on.
func TestTheVolumesAndLogsOfAPodThatWasLeftStay(t *testing.T) {
	t.Run("after adopt", func(t *testing.T) { leavesStranger(t, true) })
	t.Run("before adopt, as at a boot between", func(t *testing.T) { leavesStranger(t, false) })
}

func leavesStranger(t *testing.T, adopts bool) {
	r := critest.New(t)
	c := cri.New(r.Conn())
	root, err := checkpoint.OpenRoot(t.TempDir())
	noErr(t, err)
	defer root.Close()
	sandbox := func(name, uid string) string {
		id, err := c.RunSandbox(t.Context(), &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: name, Namespace: "default", Uid: uid},
			Labels: map[string]string{podspec.LabelPodNamespace: "default", podspec.LabelPodName: name, podspec.LabelPodUID: uid}}, "")
		noErr(t, err)
		return id
	}
	adopted := sandbox("web-node1", "u")
	sandbox("of-the-api-server", "stranger")
	logs := t.TempDir()
	data := filepath.Join(root.PodDir("stranger"), "volumes", "kubernetes.io~empty-dir", "data")
	logged := filepath.Join(logs, "default_of-the-api-server_stranger", "main")
	for _, dir := range []string{data, logged} {
		noErr(t, os.MkdirAll(dir, 0o755))
	}
	if adopts {
		noErr(t, root.Adopt([]string{adopted}))
	}

	log := slog.New(slog.DiscardHandler)
	store, err := status.Open(t.TempDir(), log)
	noErr(t, err)
	g := &Garbage{Root: root, Log: log, PodLogs: logs, Metrics: metrics.New(metrics.Config{}), Dead: func() int { return 1 },
		Lister: pleg.NewWatch(c, root.Marks, store, log).Lister}
	pods, err := g.Lister.Pods(t.Context())
	noErr(t, err)
	g.Collect(t.Context(), pods, true) // as the agent does at its start

	for _, dir := range []string{data, logged} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("a running pod that is not the agent's lost %v", err)
		}
	}
}
