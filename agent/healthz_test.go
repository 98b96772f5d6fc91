package agent

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"monopod/agent/config"
	"monopod/agent/node"
)

// A tool such as kubeadm asks the kubelet's port whether the agent is well, whatever else is served.
func TestHealthzHasAPortOfItsOwn(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	noErr(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	cfg := config.Default()
	cfg.Manifests, cfg.NodeName, cfg.Endpoint, cfg.CgroupDriver, cfg.Root, cfg.PodLogs = []string{t.TempDir()}, "n", "unix:///nowhere/runtime", node.DriverNone, t.TempDir(), t.TempDir()
	cfg.Socket, cfg.Listen, cfg.HealthzPort = t.TempDir()+"/socket", "", port
	a, err := New(cfg, nil, Options{})
	noErr(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	defer func() {
		cancel()
		noErr(t, <-ended)
	}()
	for path, want := range map[string]int{"/healthz/ping": http.StatusOK, "/healthz/syncloop": http.StatusOK, "/pods": http.StatusNotFound} {
		r, err := http.Get("http://" + a.healthz.Addr().String() + path)
		noErr(t, err)
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, r.Status, want)
		}
	}
	if !strings.HasPrefix(a.healthz.Addr().String(), "127.0.0.1:") {
		t.Errorf("it is served on %v", a.healthz.Addr())
	}
}
