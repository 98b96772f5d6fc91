package agent

import (
	"context"
	"testing"

	"monopod/agent/config"
	"monopod/agent/node"
)

func TestTheNodeKeepsItsNameUnlessGivenAnother(t *testing.T) {
	cfg := config.Default()
	cfg.Manifests, cfg.Endpoint, cfg.CgroupDriver, cfg.Listen = []string{t.TempDir()}, "unix:///nowhere/runtime", node.DriverNone, ""
	cfg.Root, cfg.PodLogs = t.TempDir(), t.TempDir()
	for _, row := range []struct{ given, want string }{{"edge7", "edge7"}, {"", "edge7"}, {"edge8", "edge8"}, {"", "edge8"}} {
		cfg.NodeName, cfg.Socket = row.given, t.TempDir()+"/socket"
		a, err := New(cfg, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.cfg.NodeName != row.want {
			t.Errorf("given %q: the node is called %q, want %q", row.given, a.cfg.NodeName, row.want)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		noErr(t, a.server.Run(ended))
		a.Close()
	}
}
