package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/instance"
	"monopod/agent/message"
	"monopod/agent/panics"
	"monopod/agent/plan"
	"monopod/agent/podevents"
	"monopod/agent/podimages"
	"monopod/agent/saidonce"
	"monopod/agent/wake"
	"monopod/manifests"
)

// pod is what a worker and its parts have in common: the pod's name, what is
// known of its instances, and how work for it runs.
type pod struct {
	shared     *Pool
	files      instance.Files
	events     podevents.Recorder
	key        manifests.Key
	log        *slog.Logger
	known      map[string]*checkpoint.Checkpoint // by uid
	life       context.Context                   // ends with the agent, or when the sync loop ends the worker
	current    Update                            // of the last pass
	remakes    bool                              // sandboxes die again and again: see logRemakes
	woken      wake.Slot
	background sync.WaitGroup  // goroutines of fetches, stops and hooks
	unsaved    saidonce.Errors // what is not in the checkpoint on disk
}

func newPod(pool *Pool, life context.Context, key manifests.Key, known map[string]*checkpoint.Checkpoint) *pod {
	log := pool.Log.With("pod", key.String())
	p := &pod{shared: pool, key: key, log: log, known: known, life: life, woken: wake.New()}
	p.files.Disk, p.files.Key, p.files.Log = pool.Disk, key, log
	p.events = podevents.Recorder{Events: pool.Events, Key: key, Machine: pool.Disk.Machine, Known: known,
		Current: func() *manifests.Pod { return p.current.Pod }}
	return p
}

// Wake makes the worker sync its pod again.
func (p *pod) Wake() { p.woken.Wake() }

// caught turns a panic in the work on the worker's pod into *err: an error of
// this pod alone. what is a noun, for the log. caught must be deferred itself, in every
// goroutine that works for the pod.
func (p *pod) caught(err *error, what, container string) {
	if v := recover(); v != nil {
		*err = panics.New(v)
		p.fault(*err, what, container)
	}
}

// contained calls do, which the pod can do without.
func (p *pod) contained(what string, do func()) {
	var err error
	defer p.caught(&err, what, "")
	do()
}

// fault reports a panic in the work on the worker's pod. Any goroutine may call it.
func (p *pod) fault(err error, what, container string) {
	p.shared.Metrics.Panic()
	uid := ""
	if p, ok := p.shared.Store.Pod(p.key.String()); ok {
		uid = string(p.UID)
	}
	p.shared.Events.Record(events.PodRef(p.key.Namespace, p.key.Name, uid), v1.EventTypeWarning, plan.ReasonFault, message.Of("%s: %s", message.Name(what), message.Private(err.Error())))
	if !p.shared.Faults.IsNew(p.key.String()+" "+what+" "+container, err) {
		return
	}
	log := p.log
	if container != "" {
		log = log.With("container", container)
	}
	log.Error(what+" failed", panics.Logged(err)...)
}

// ownUID refuses to create anything of the desired pod while another pod name
// has its uid in the runtime: that pod has no checkpoint and must go first.
func (p *pod) ownUID(s *plan.Facts) error {
	uid := string(s.Pod.UID)
	for _, other := range s.Observed.All.NamesOf(uid) {
		if other != p.key {
			return plan.Because(admission.ReasonUIDInUse, errors.New(admission.UidStillOf(uid, other)))
		}
	}
	return nil
}

// fetchSettings are what fetches use of the pod.
func (p *pod) fetchSettings() podimages.Settings {
	return podimages.Settings{Images: p.shared.Images, Events: &p.events, Wake: p.Wake, Go: p.background.Go, Caught: p.caught, Fault: p.fault,
		Secrets: func(of *v1.Pod) []*v1.Secret { return p.events.PullSecrets(of, p.shared.Disk.Objects.Now(), p.log) }}
}
