package worker

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/cnicache"
	"monopod/agent/config"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/instance"
	"monopod/agent/logrotate"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podhosts"
	"monopod/agent/podspec"
	"monopod/agent/settings"
	"monopod/agent/slots"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/documents"
)

// idleWorker returns a worker of the pod ns/web that does not run.
func idleWorker(t *testing.T, disk *instance.Disk, known map[string]*checkpoint.Checkpoint) *Worker {
	pool := &Pool{Disk: disk, Events: events.Open(events.Config{Log: slog.New(slog.DiscardHandler)}), Log: slog.New(slog.DiscardHandler)}
	return pool.New(t.Context(), manifests.Key{Namespace: "ns", Name: "web"}, known)
}

// rig is a worker of the pod default/web-n, whose passes a test makes, on a runtime in
// memory.
type rig struct {
	*testing.T
	*critest.Runtime
	pool *Pool
	root *checkpoint.Root
	*Worker
	log strings.Builder
}

// bubble runs a test of a worker that has just been made.
func bubble(t *testing.T, test func(*rig)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Runtime: critest.New(t)}
		r.AddImage("img:1", "img:2")
		ctx, cancel := context.WithCancel(t.Context())
		end := r.open(ctx, dir)
		r.Worker = r.pool.New(ctx, manifests.Key{Namespace: "default", Name: "web-n"}, map[string]*checkpoint.Checkpoint{})
		r.Observer = pleg.NewObserver(r.pod.shared.Cri, r.pod.shared.Watch.Lister, r.Worker.pod.key)
		synctest.Wait()
		test(r)
		cancel()
		r.pod.background.Wait()
		r.probes.set.Close()
		end()
	})
}

// open makes the pool and what belongs to it.
func (r *rig) open(ctx context.Context, dir string) (end func()) {
	r.Helper()
	log, cfg := slog.New(slog.NewTextHandler(&r.log, nil)), config.Default()
	cfg.NodeName, cfg.Root, cfg.PodLogs, cfg.ResolvConf = "n", dir, filepath.Join(dir, "logs"), "/dev/null"
	root, err := checkpoint.OpenRoot(dir)
	if err != nil {
		r.Fatal(err)
	}
	store, err := status.Open(root.Path("status"), log)
	if err != nil {
		r.Fatal(err)
	}
	machine, err := node.New(settings.Node(cfg), func() node.NodeSettings { return settings.Node(cfg) }, root.Instance, log)
	if err != nil {
		r.Fatal(err)
	}
	client := cri.New(r.Conn())
	watch := pleg.NewWatch(client, root.Marks, store, log)
	watch.Events, watch.Node, watch.Lister.PodLogs, watch.Metrics = events.Open(events.Config{Log: log}), "n", cfg.PodLogs, metrics.New(metrics.Config{})
	rotator := logrotate.New(settings.Logs(cfg), pleg.LogRuntime{Cri: client, Watch: watch}, log)
	hosts := podhosts.New(podhosts.Config{Store: store, Root: dir, Host: func() *podspec.Host { return machine.Now() }, On: func() bool { return false }, Log: log})
	r.root = root
	r.pool = &Pool{Metrics: watch.Metrics, Cri: client, Images: image.New(client, image.Config{}), Store: store, Events: watch.Events, Watch: watch, Log: log,
		Disk: &instance.Disk{Root: root, Machine: machine, Hosts: hosts, PodLogs: cfg.PodLogs, Rotator: rotator}, CNI: cnicache.Cache{Dir: filepath.Join(dir, "cni"), Log: log},
		Sandboxes: slots.New(1), Containers: slots.New(1), ContainerStops: slots.NewWindow(2), SandboxStops: slots.New(1), Removals: slots.New(1), States: make(chan State, 100), Uids: admission.NewTable(machine.Facts, nil, nil).Uids,
		Settings: func() plan.PlanSettings { return settings.Plans(cfg) }, StopsFirst: func(*v1.Pod) bool { return false },
		StartFailed: func(manifests.Key, string, int, string, string) {}}
	var parts sync.WaitGroup
	parts.Go(func() { watch.Run(ctx) })
	return func() {
		parts.Wait()
		store.Close(context.Background())
		root.Close()
	}
}

// web is a version of the pod.
func (r *rig) web(image string) *manifests.Pod {
	r.Helper()
	return r.podOf("metadata: {name: web}\nspec: {hostNetwork: true, containers: [{name: c, image: '" + image + "'}]}\n")
}

// podOf is the pod of a manifest without its first two lines.
func (r *rig) podOf(doc string) *manifests.Pod {
	r.Helper()
	pods, problems := documents.Decode("/m/web.yaml", []byte("apiVersion: v1\nkind: Pod\n"+doc), documents.Options{NodeName: "n", NameSuffix: true})
	if len(pods) != 1 {
		r.Fatal(problems)
	}
	return pods[0]
}

// passes makes passes for an update until one wants to wait, and returns for what.
func (r *rig) passes(u Update) look {
	r.Helper()
	for range 20 {
		next := r.pass(r.Context(), u)
		synctest.Wait()
		if len(r.pod.woken) > 0 {
			<-r.pod.woken
			continue
		}
		if !next.again {
			return next
		}
	}
	r.Fatal("the passes come to no end")
	return look{}
}

// after lets time go by, with the passes that come due.
func (r *rig) after(d time.Duration, u Update) {
	r.Helper()
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(time.Second) {
		synctest.Wait()
		r.passes(u)
	}
}

// runs checks what runs.
func (r *rig) runs(want ...string) {
	r.Helper()
	if got := r.Running(); !slices.Equal(got, want) {
		r.Fatalf("running %v, want %v; the log says\n%s", got, want, &r.log)
	}
}

// last is the last state that the sync loop was told.
func (r *rig) last() (last State) {
	for len(r.pod.shared.States) > 0 {
		last = <-r.pod.shared.States
	}
	return last
}

// A listing that fails is shared by all workers, and no pod's trouble: the watch tells of it, once.
func TestAListingThatFailsIsNoTroubleOfThePod(t *testing.T) {
	bubble(t, func(r *rig) {
		u := Update{Pod: r.web("img:1")}
		r.passes(u)
		r.Fault(critest.On("ListContainers").Times(1).Fail(codes.DeadlineExceeded, "no answer"))
		if next := r.pass(r.Context(), u); !next.deaf || !next.at.After(time.Now()) {
			r.Errorf("it looks again %+v", next)
		}
		if said := r.log.String(); strings.Contains(said, "sync failed") || strings.Contains(said, "FailedSync") {
			r.Errorf("the log says\n%s", said)
		}
		if next := r.passes(u); next.deaf {
			r.Errorf("after a listing that succeeds it looks again %+v", next)
		}
	})
}

func TestAPodIsMadeAndUnmade(t *testing.T) {
	bubble(t, func(r *rig) {
		if next := r.passes(Update{Pod: r.web("img:1"), Generation: 1}); next != (look{}) {
			r.Errorf("a pod that runs is looked at %+v", next)
		}
		r.runs("default/web-n/c")
		if s := r.last(); !s.Cleared || !s.Ready || s.Unmade || s.Gone || s.Generation != 1 {
			r.Errorf("the sync loop is told %+v", s)
		}
		calls := r.Count("RunPodSandbox") + r.Count("CreateContainer") + r.Count("StartContainer")
		r.passes(Update{Pod: r.web("img:1"), Generation: 1})
		if n := r.Count("RunPodSandbox") + r.Count("CreateContainer") + r.Count("StartContainer"); n != calls {
			r.Errorf("another pass makes %d calls more", n-calls)
		}
		r.passes(Update{Generation: 2})
		time.Sleep(time.Minute) // the grace period
		r.passes(Update{Generation: 2})
		r.runs()
		if s := r.last(); !s.Gone || !s.Cleared || s.Generation != 2 {
			r.Errorf("the sync loop is told %+v", s)
		}
		if n := len(r.Sandboxes()); n != 0 {
			r.Errorf("%d sandboxes are left", n)
		}
	})
}

// What a pod needs to be known by the next agent is on disk before anything is made.
func TestAPodIsAcceptedBeforeAnythingIsMade(t *testing.T) {
	bubble(t, func(r *rig) {
		var there []string
		r.Fault(critest.On("RunPodSandbox").Before(func() {
			all, err := r.root.Checkpoints(nil)
			if err != nil {
				r.Error(err)
			}
			for _, c := range all {
				there = append(there, c.Pod.Name)
			}
		}))
		r.passes(Update{Pod: r.web("img:1")})
		r.runs("default/web-n/c")
		if !slices.Equal(there, []string{"web-n"}) {
			r.Errorf("before its sandbox is made there are checkpoints of %v", there)
		}
	})
}

// A pass that cannot see the pod makes nothing, and is tried again after longer and longer
// waits that no event shortens.
func TestAPassThatCannotSeeIsTriedAgainLater(t *testing.T) {
	bubble(t, func(r *rig) {
		r.passes(Update{Pod: r.web("img:1")})
		r.Exit("c", 1)
		synctest.Wait()
		f := r.Fault(critest.On("ContainerStatus").Times(2).Fail(codes.Internal, "no"))
		made := r.Count("StartContainer")
		var waits []time.Duration
		for range 2 {
			next := r.pass(r.Context(), Update{Pod: r.pod.current.Pod})
			waits = append(waits, time.Until(next.at))
			if !next.deaf || next.again {
				r.Fatalf("it is looked at again %+v; the fault %v", next, f)
			}
		}
		if want := []time.Duration{plan.RetryFirst, 2 * plan.RetryFirst}; !slices.Equal(waits, want) {
			r.Errorf("it waits %v, want %v", waits, want)
		}
		if n := r.Count("StartContainer"); n != made {
			r.Errorf("%d starts more", n-made)
		}
		r.passes(Update{Pod: r.pod.current.Pod})
		r.runs("default/web-n/c")
	})
}

// A panic in a pass is a pass that failed: it is the pod's, and the next pass goes on.
func TestAPanicInAPassIsAPassThatFailed(t *testing.T) {
	bubble(t, func(r *rig) {
		of := r.pool.Settings
		r.pool.Settings = func() plan.PlanSettings { panic("no settings") }
		if next := r.containedPass(r.Context(), Update{Pod: r.web("img:1")}); !next.deaf || time.Until(next.at) != plan.RetryFirst {
			r.Errorf("it is looked at again %+v", next)
		}
		r.pool.Settings = of
		r.passes(Update{Pod: r.web("img:1")})
		r.runs("default/web-n/c")
	})
}

// The newest update counts, and ends what waits for the one before.
func TestTheNewestUpdateWins(t *testing.T) {
	w := idleWorker(t, &instance.Disk{}, nil)
	ctx, _ := w.nextUpdate(t.Context())
	w.Update(Update{Generation: 1})
	w.Update(Update{Generation: 2})
	if context.Cause(ctx) != errNewVersion {
		t.Errorf("the wait of the first has ended: %v", context.Cause(ctx))
	}
	ctx, u := w.nextUpdate(t.Context())
	if u.Generation != 2 || ctx.Err() != nil || len(w.pod.woken) != 1 {
		t.Errorf("update %d, %v, woken %d times", u.Generation, ctx.Err(), len(w.pod.woken))
	}
}
