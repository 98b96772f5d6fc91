package agent

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/node"
	"monopod/agent/podstatus"
	"monopod/cri/critest"
)

// keeper is an agent that keeps the pods of a folder, on a runtime behind a real
// socket.
type keeper struct {
	*testing.T
	*critest.Runtime
	cfg  config.Config
	log  *lines
	stop func()
	a    *Agent
}

func newKeeper(t *testing.T) *keeper {
	r := critest.Start(t)
	r.AddImage("img:1")
	dir, log := t.TempDir(), &lines{}
	k := &keeper{T: t, Runtime: r, log: log, cfg: config.Default()}
	k.cfg.Manifests, k.cfg.NodeName, k.cfg.Endpoint, k.cfg.Root = []string{filepath.Join(dir, "manifests")}, "n", r.Endpoint(), filepath.Join(dir, "root")
	k.cfg.PodLogs, k.cfg.Socket, k.cfg.Listen = filepath.Join(dir, "logs"), filepath.Join(dir, "socket"), ""
	k.cfg.ResolvConf, k.cfg.CgroupDriver = "/dev/null", node.DriverNone
	noErr(t, os.Mkdir(k.cfg.Manifests[0], 0o755))
	return k
}

func (k *keeper) start() {
	k.Helper()
	a, err := New(k.cfg, nil, Options{Log: slog.New(slog.NewTextHandler(k.log, nil))})
	noErr(k.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- a.Run(ctx) }()
	k.a, k.stop = a, func() {
		cancel()
		noErr(k.T, <-end)
		k.stop = func() {}
	}
	k.Cleanup(func() { k.stop() })
}

// until waits for something that the agent reports.
func (k *keeper) until(what string, is func() bool) {
	k.Helper()
	changes, late := k.a.Store().Changes(), time.After(20*time.Second)
	for !is() {
		select {
		case <-changes:
		case <-late:
			k.Fatalf("not so after a long time: %s; the log:\n%s", what, k.log)
		}
	}
}

func (k *keeper) mark() string { return filepath.Join(k.cfg.Root, checkpoint.CleanEnd) }

func (k *keeper) ready(pod string) func() bool {
	return func() bool {
		p, ok := k.a.Store().Pod(pod)
		return ok && podstatus.IsReady(&p.Status)
	}
}

// Whoever removes the manifest that the agent dies of gets a healthy agent.
func TestAfterACrashAPodWithoutAManifestDoesNotStart(t *testing.T) {
	k := newKeeper(t)
	poison, good := filepath.Join(k.cfg.Manifests[0], "poison.yaml"), filepath.Join(k.cfg.Manifests[0], "good.yaml")
	noErr(t, os.WriteFile(poison, []byte(manifest("poison", "img:1", "terminationGracePeriodSeconds: 1")), 0o644))
	noErr(t, os.WriteFile(good, []byte(manifest("good", "img:1")), 0o644))
	k.start()
	k.until("both run", func() bool { return k.ready("default/poison-n")() && k.ready("default/good-n")() })
	if _, err := os.Stat(k.mark()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mark of a clean end is there while the agent runs: %v", err)
	}
	k.stop()
	noErr(t, os.Remove(k.mark())) // it was killed
	k.Exit("poison-n/c", 1)
	noErr(t, os.Remove(poison))
	before := k.Count("StartContainer")
	k.start()
	k.until("the pod is gone", func() bool {
		_, left := k.Sandbox("poison-n")
		return !left && k.ready("default/good-n")()
	})
	if after := k.Count("StartContainer"); after != before {
		t.Errorf("%d containers started of a pod that the agent may have died of", after-before)
	}
}

// A power cut leaves neither a mark nor, at first, the folder.
func TestAfterACrashPodsStartWithoutTheirFolder(t *testing.T) {
	k := newKeeper(t)
	noErr(t, os.WriteFile(filepath.Join(k.cfg.Manifests[0], "good.yaml"), []byte(manifest("good", "img:1")), 0o644))
	k.start()
	k.until("it runs", k.ready("default/good-n"))
	k.stop()
	noErr(t, os.Remove(k.mark()))
	noErr(t, os.RemoveAll(k.cfg.Manifests[0]))
	k.Exit("good-n/c", 1)
	k.start()
	k.until("it runs again", func() bool { return k.Count("StartContainer") == 2 && k.ready("default/good-n")() })
}

func TestACleanEndIsKnownToTheNextAgent(t *testing.T) {
	k := newKeeper(t)
	k.start()
	k.stop()
	if _, err := os.Stat(k.mark()); err != nil {
		t.Fatal(err)
	}
	a, err := New(k.cfg, nil, Options{Log: slog.New(slog.NewTextHandler(k.log, nil))})
	noErr(t, err)
	if a.root.InDoubt(0, a.log) {
		t.Error("a clean end is doubted")
	}
	if !a.root.InDoubt(0, a.log) {
		t.Error("an agent that did not end is taken for one that did")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	noErr(t, a.Run(ended))
}
