package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/config"
	"monopod/agent/metrics"
	"monopod/agent/node"
	ofrun "monopod/agent/once"
	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
	"monopod/cri/critest"
	"monopod/manifests"
)

// oneRun is an agent for one run, on a runtime behind a real socket.
type oneRun struct {
	*testing.T
	*Agent
	root string
	end  chan error
	stop context.CancelFunc

	failed chan string // starts, as they are told
}

func (o *oneRun) startFailed(pod manifests.Key, container string, nth int, reason, message string) {
	o.failed <- fmt.Sprintf("%s/%s %d: %s: %s", pod, container, nth, reason, message)
}

func runOnce(t *testing.T, r *critest.Runtime, root string, docs ...string) *oneRun {
	t.Helper()
	var pods []*manifests.Pod
	for _, doc := range docs {
		found, problems := manifests.Decode("/m.yaml", []byte(doc), manifests.Options{NodeName: "n", NameSuffix: true})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		pods = append(pods, found...)
	}
	cfg := config.Default()
	cfg.NodeName, cfg.Endpoint, cfg.Root, cfg.PodLogs = "n", r.Endpoint(), root, filepath.Join(root, "logs")
	cfg.ResolvConf, cfg.CgroupDriver = "/dev/null", node.DriverNone
	o := &oneRun{T: t, root: root, end: make(chan error, 1), failed: make(chan string, 100)}
	a, err := New(cfg, &Once{Pods: pods, Failed: o.startFailed}, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o.Agent = a
	var ctx context.Context
	ctx, o.stop = context.WithCancel(t.Context())
	go func() { o.end <- a.Run(ctx) }()
	return o
}

// await waits until the pod is in that phase.
func (o *oneRun) await(pod string, phase v1.PodPhase) {
	o.Helper()
	changes := o.Store().Changes()
	for {
		if p, ok := o.Store().Pod(pod); ok && p.Status.Phase == phase {
			return
		}
		select {
		case <-changes:
		case <-time.After(20 * time.Second):
			o.Fatalf("%s does not become %s", pod, phase)
		}
	}
}

func (o *oneRun) awaitGone() {
	o.Helper()
	select {
	case <-o.Gone():
	case <-time.After(20 * time.Second):
		o.Fatal("something is left")
	}
}

// leaves ends the agent and returns its error.
func (o *oneRun) leaves() error {
	o.stop()
	return <-o.end
}

func nothingLeft(t *testing.T, r *critest.Runtime, root string) {
	t.Helper()
	if n := len(r.Sandboxes()) + len(r.Containers()); n > 0 {
		t.Errorf("%d things are left in the runtime", n)
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root dir is left: %v", err)
	}
}

func TestOneRunLeavesNothing(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	r.Program("c", critest.ExitsAfter(0, 0).Logs("a line"))
	o := runOnce(t, r, root, manifest("job", "img:1", "restartPolicy: Never"))
	o.await("default/job-n", v1.PodSucceeded)
	select {
	case <-o.Gone():
		t.Error("gone before it was retired")
	default:
	}
	o.Retire()
	o.awaitGone()
	if logs, _ := filepath.Glob(root + "/logs/*/c/0.log"); len(logs) != 1 {
		t.Error("its log went with the pod, whoever reads it still")
	}
	if err := o.leaves(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, r, root)
}

// The directory of a claim outlives pods, but not the run that made it.
func TestTheClaimsOfARunGoWithIt(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	r.Program("c", critest.ExitsAfter(0, 0))
	o := runOnce(t, r, root, strings.Replace(claimant, "spec:\n", "spec:\n  restartPolicy: Never\n", 1))
	o.await("default/web-n", v1.PodSucceeded)
	noErr(t, os.WriteFile(filepath.Join(root, "volumes", "default_data", "result"), []byte("x"), 0o644))
	o.Retire()
	o.awaitGone()
	noErr(t, o.leaves())
	nothingLeft(t, r, root)
}

func TestARunIsToldOfStartsThatFail(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	r.Fault(critest.On("CreateContainer").Fail(codes.Unknown, "no such device"))
	o := runOnce(t, r, root, manifest("job", "img:1", "restartPolicy: Never"))
	for nth := 1; nth <= 2; nth++ {
		select {
		case got := <-o.failed:
			if want := fmt.Sprintf("default/job-n/c %d: CreateContainerError: ", nth); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "no such device") {
				t.Errorf("told %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("not told")
		}
	}
	r.ClearFaults()
	o.Retire()
	o.awaitGone()
	if err := o.leaves(); err != nil {
		t.Error(err)
	}
}

func TestWhatARunLeftIsRemovedByTheNext(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	o := runOnce(t, r, root, manifest("web", "img:1"))
	o.await("default/web-n", v1.PodRunning)
	if err := o.leaves(); err != nil || len(r.Running()) != 1 {
		t.Fatalf("kept: %v, running %v", err, r.Running())
	}
	o = runOnce(t, r, root)
	o.awaitGone()
	if err := o.leaves(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, r, root)
}

// A pod that only the runtime knows of is known when the runtime was asked.
func TestARunIsNotGoneBeforeTheRuntimeWasAsked(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	o := runOnce(t, r, root, manifest("web", "img:1"))
	o.await("default/web-n", v1.PodRunning)
	if err := errors.Join(o.leaves(), os.RemoveAll(filepath.Join(root, "pods"))); err != nil {
		t.Fatal(err)
	}
	r.Fault(critest.On("ListContainers").Delay(100 * time.Millisecond))
	o = runOnce(t, r, root)
	o.awaitGone()
	if err := o.leaves(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, r, root)
}

func TestAKillDoesNotWaitForAGrace(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	r.Program("c", critest.Runs().IgnoresTerm())
	o := runOnce(t, r, root, manifest("deaf", "img:1", "terminationGracePeriodSeconds: 3600"))
	o.await("default/deaf-n", v1.PodRunning)
	o.Retire()
	if err := o.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.awaitGone()
	if err := o.leaves(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, r, root)
}

func TestWhatCannotBeRemovedIsNamed(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	o := runOnce(t, r, root, manifest("web", "img:1"))
	o.await("default/web-n", v1.PodRunning)
	r.Stop()
	o.Retire()
	err := o.leaves()
	if err == nil || !strings.Contains(err.Error(), "pod default/web-n") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "pods")); err != nil {
		t.Errorf("its files are gone: %v", err)
	}
}

// Where cgroups cannot be made a run goes without, unless it was told a driver.
func TestARunGoesWithoutCgroups(t *testing.T) {
	cfg := cgrouptest.V2(t)
	cfg.Own = "own"
	cfg.Mkdir = func(string) error { return fs.ErrPermission }
	for _, row := range []struct {
		driver string
		once   *Once
		ok     bool
	}{{node.DriverAuto, &Once{}, true}, {string(cgroups.Cgroupfs), &Once{}, false}, {node.DriverAuto, nil, false}} {
		manager, err := cgroups.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		log := &lines{}
		g := &node.PodCgroups{Metrics: metrics.New(metrics.Config{}), Manager: manager, Log: slog.New(slog.NewTextHandler(log, nil)), Burstable: map[string]int64{},
			Machine: &node.Node{Cfg: row.once.settingsOfNode(node.NodeSettings{CgroupDriver: row.driver}, "i")}}
		err = g.SetUp(t.Context(), cgroups.Cgroupfs)
		if (err == nil) != row.ok || g.None() != row.ok {
			t.Errorf("driver %s, once %v: none %v, error %v", row.driver, row.once != nil, g.None(), err)
		}
		if row.ok && strings.Count(log.String(), "no cgroups of their own") != 1 {
			t.Errorf("said %s", log)
		}
	}
}

// Another run that begins meanwhile must not take it for a killed one: it would remove it, too.
func TestARunThatRemovesItselfIsNoKilledOne(t *testing.T) {
	r, root := critest.Start(t), filepath.Join(t.TempDir(), "root")
	r.AddImage("img:1")
	r.Program("c", critest.ExitsAfter(0, 0))
	o := runOnce(t, r, root, manifest("job", "img:1", "restartPolicy: Never"))
	o.await("default/job-n", v1.PodSucceeded)
	noErr(t, ofrun.Note{}.Write(root))
	for k := range 3000 { // which takes a while to remove
		noErr(t, os.WriteFile(filepath.Join(root, "logs", fmt.Sprintf("more-%d", k)), nil, 0o600))
	}
	o.Retire()
	o.awaitGone()
	left := make(chan error, 1)
	go func() { left <- o.leaves() }()
	for {
		select {
		case err := <-left:
			noErr(t, err)
			nothingLeft(t, r, root)
			return
		default:
			if ofrun.Left(root) {
				t.Fatalf("it is offered for removal while it goes: %v", <-left)
			}
		}
	}
}
