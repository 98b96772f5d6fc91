package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/node"
	"monopod/agent/status"
	"monopod/agent/volume"
	"monopod/agent/worker"
	"monopod/manifests"
)

// Once makes an agent one for a single run of a few pods, beside whatever else
// runs on the machine. It reads no folder, serves nobody, removes no images,
// has cgroups of its own, or none where they cannot be made, keeps the logs of
// pods that are gone, and removes its root dir when it ends and nothing of any
// pod is left.
type Once struct {
	Pods []*manifests.Pod // that shall run from the beginning, of uids that nobody else has
}

// once is what such an agent has besides.
type once struct {
	wishes chan manifests.Snapshot // one slot, latest wins

	mu      sync.Mutex // guards what follows, and is held while the slot is filled
	retired bool       // all pods are to go
}

func newOnce(o *Once) *once {
	if o == nil {
		return nil
	}
	out := &once{wishes: make(chan manifests.Snapshot, 1)}
	out.setDesired(o.Pods)
	return out
}

// setDesired makes the pods those that shall run, and no others.
func (o *once) setDesired(pods []*manifests.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.wishes:
	default:
	}
	o.retired = len(pods) == 0
	o.wishes <- manifests.Snapshot{Pods: pods, Read: true, Complete: true}
}

// snapshots delivers what shall run.
func (a *Agent) snapshots() <-chan manifests.Snapshot {
	if a.once != nil {
		return a.once.wishes
	}
	return a.source.Snapshots()
}

// settingsOfNode returns the settings for an agent of one run: its pods' cgroups
// are in one of its own, and pods run without where they cannot have any, as in a
// container of a CI system, unless a driver was chosen.
func (o *Once) settingsOfNode(s node.NodeSettings, instance string) node.NodeSettings {
	if o != nil {
		s.OwnCgroup, s.MayLackCgroups = "monopod-once-"+instance, s.CgroupDriver == node.DriverAuto
	}
	return s
}

// Endpoint returns where the runtime is.
func (a *Agent) Endpoint() string { return a.cri.Endpoint() }

// Store returns what the agent reports.
func (a *Agent) Store() *status.Store { return a.store }

// Retire makes all pods go, each with its grace. Only for an agent of one run.
func (a *Agent) Retire() { a.once.setDesired(nil) }

// Gone is closed when no pod is wanted any more and nothing of any is left. The
// runtime must have answered for that.
func (a *Agent) Gone() <-chan struct{} { return a.sync.empty }

// Kill kills the containers that run at this moment. What has to go beside them
// goes by Retire.
func (a *Agent) Kill(ctx context.Context) error {
	all, err := a.watch.Lister.List(ctx)
	if err != nil {
		return err
	}
	var calls sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, p := range all.Pods {
		for _, c := range p.Containers {
			if c.State != rt.ContainerState_CONTAINER_RUNNING {
				continue
			}
			calls.Go(func() {
				err := worker.Gone(a.cri.StopContainer(ctx, c.Id, 0))
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
	}
	calls.Wait()
	return errors.Join(errs...)
}

// dismantleWithin bounds the removal of what no pod has any more.
const dismantleWithin = 10 * time.Second

// leave removes what an agent of one run made for itself. What is left of pods
// is named in the error, and stays. An agent that ended as it was asked to,
// before its pods were to go, leaves everything as it is.
func (a *Agent) leave(ctx context.Context, asked bool) error {
	a.once.mu.Lock()
	stays := asked && !a.once.retired
	a.once.mu.Unlock()
	if stays {
		return nil
	}
	if left := a.root.Remains(a.log); len(left) > 0 {
		return fmt.Errorf("something is left of %s", strings.Join(left, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, dismantleWithin)
	defer cancel()
	if !a.cgroups.None() {
		if err := a.cgroups.Manager.Dismantle(ctx); err != nil {
			return err
		}
	}
	a.Close() // the store writes for the last time
	return volume.RemoveRoot(ctx, a.cfg.Root)
}

// abandon gives back what New took before it went wrong.
func (a *Agent) abandon() {
	if a.once != nil && !a.cgroups.None() {
		ctx, cancel := context.WithTimeout(context.Background(), dismantleWithin)
		defer cancel()
		if err := a.cgroups.Manager.Dismantle(ctx); err != nil {
			a.log.Warn("cgroups are left", "err", err)
		}
	}
	a.Close()
}

// signalEmpty tells, once, that no pod is wanted and none is left.
func (l *syncLoop) signalEmpty() {
	if l.last == nil || !l.last.Complete || len(l.last.Pods) > 0 || !l.relisted || len(l.workers)+len(l.restored)+len(l.seen.Pods) > 0 {
		return
	}
	select {
	case <-l.empty:
	default:
		close(l.empty)
	}
}
