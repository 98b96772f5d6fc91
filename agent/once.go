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

// Once configures an agent for a single run of a few pods. It does not affect other agents on the
// machine: it reads no folder, has no endpoint, removes no images, has its own cgroups (or none
// where they cannot be made), keeps the logs of removed pods, lists its pods in the hosts files of
// each other, and removes its root dir when it ends and nothing of any pod is left.
type Once struct {
	Pods    []*manifests.Pod // to run from the start, each with a unique uid
	Objects []*manifests.Object
	// Failed is called for each start of a container, or of a pod if container is "", that failed
	// for the nth time in a row; nil: it is not called.
	Failed func(pod manifests.Key, container string, nth int, reason, message string)
}

// failed returns Failed, or a no-op where there is no run or no Failed.
func (o *Once) failed() func(manifests.Key, string, int, string, string) {
	if o == nil || o.Failed == nil {
		return func(manifests.Key, string, int, string, string) {}
	}
	return o.Failed
}

// once is the state that only such an agent has.
type once struct {
	desired chan manifests.Snapshot // one slot, latest wins
	objects []*manifests.Object

	mu      sync.Mutex // guards retired, and is held while the slot is filled
	retired bool       // no pod is desired any more
}

func newOnce(o *Once) *once {
	if o == nil {
		return nil
	}
	out := &once{desired: make(chan manifests.Snapshot, 1), objects: o.Objects}
	out.setDesired(o.Pods)
	return out
}

// setDesired replaces the desired pods.
func (o *once) setDesired(pods []*manifests.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.desired:
	default:
	}
	o.retired = len(pods) == 0
	o.desired <- manifests.Snapshot{Pods: pods, Objects: o.objects, Read: true, Complete: true}
}

// snapshots returns the channel of the desired pods.
func (a *Agent) snapshots() <-chan manifests.Snapshot {
	if a.once != nil {
		return a.once.desired
	}
	return a.source.Snapshots()
}

// settingsOfNode returns the settings for an agent of one run: the cgroups of its pods are below a
// cgroup of its own, and those of the machine's processes stay as they are. Unless a driver was
// chosen, pods run without cgroups where these cannot be made, as in a container of a CI system.
func (o *Once) settingsOfNode(s node.NodeSettings, instance string) node.NodeSettings {
	if o != nil {
		s.OwnCgroup, s.MayLackCgroups = "monopod-once-"+instance, s.CgroupDriver == node.DriverAuto
		s.ExclusiveCPUs = false // see settings.Pinning
		s.Reserved.Held = nil   // another agent may hold them
	}
	return s
}

// Endpoint returns the address of the runtime.
func (a *Agent) Endpoint() string { return a.cri.Endpoint() }

// Store returns the status store of the agent.
func (a *Agent) Store() *status.Store { return a.store }

// Retire stops and removes all pods, each with its grace period. Only an agent of one run has it.
func (a *Agent) Retire() { a.once.setDesired(nil) }

// Gone returns a channel that is closed when no pod is desired and nothing of any pod is left, as
// observed in a relist of the runtime.
func (a *Agent) Gone() <-chan struct{} { return a.sync.empty }

// Kill kills the containers that run now, without grace. Retire removes the rest of
// their pods.
func (a *Agent) Kill(ctx context.Context) error {
	all, err := a.watch.Lister.Pods(ctx)
	if err != nil {
		return err
	}
	var calls sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, p := range all {
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

// dismantleWithin bounds the removal of cgroups and root dir.
const dismantleWithin = 10 * time.Second

// leave removes what an agent of one run made for itself. The error names the pods of which
// something is left; then everything stays. asked: the agent ended as requested; if its pods are
// still desired, everything stays.
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
	if a.managed != nil {
		if err := a.managed.Remove(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dismantleWithin)
	defer cancel()
	if !a.cgroups.None() {
		if err := a.cgroups.Manager.Dismantle(ctx); err != nil {
			return err
		}
	}
	a.closeButRoot()     // the store writes its last status
	defer a.root.Close() // an unlocked root dir is what a killed run left, and another run would take it over
	return volume.RemoveRoot(ctx, a.cfg.Root)
}

// Abandon releases what New acquired, if Run is not called.
func (a *Agent) Abandon() {
	if a.once != nil && !a.cgroups.None() {
		ctx, cancel := context.WithTimeout(context.Background(), dismantleWithin)
		defer cancel()
		if err := a.cgroups.Manager.Dismantle(ctx); err != nil {
			a.log.Warn("cgroups not removed", "err", err)
		}
	}
	a.Close()
}
