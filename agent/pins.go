package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/cpus"
	"monopod/agent/events"
	"monopod/agent/pinning"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/server"
	"monopod/agent/settings"
	"monopod/agent/worker"
	"monopod/cri"
	"monopod/manifests"
)

// pins is the runtime of a pinning.Keeper.
type pins struct {
	cri    *cri.Client
	lister *pleg.Lister
}

// Running returns the agent's containers that run.
func (p pins) Running(ctx context.Context) ([]cpus.Running, error) {
	pods, err := p.lister.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var all []cpus.Running
	for _, listed := range pods {
		for _, c := range listed.Containers {
			if c.State == rt.ContainerState_CONTAINER_RUNNING {
				all = append(all, cpus.Running{Key: cpus.Key{UID: c.Labels[podspec.LabelPodUID], Container: c.Metadata.GetName()}, ID: c.Id})
			}
		}
	}
	return all, nil
}

// Pin makes a running container run on these CPUs only. One that has been removed meanwhile needs
// none.
func (p pins) Pin(ctx context.Context, id, list string) error {
	err := p.cri.UpdateContainer(ctx, id, &rt.LinuxContainerResources{CpusetCpus: list})
	if cri.NotFound(err) {
		return nil
	}
	return err
}

// newPins returns the keeper of the CPUs of containers; nil: they share all.
func (a *Agent) newPins(once bool) (*pinning.Keeper, error) {
	k, err := pinning.New(settings.Pinning(a.cfg, once), pins{a.cri, a.watch.Lister}, a.log, a.recordTrouble)
	if err != nil {
		return nil, &server.SettingsError{Text: err.Error()}
	}
	if k != nil {
		k.Assigned = a.metrics.Pinned
	}
	return k, nil
}

// assignOwn assigns CPUs and devices to the pods that run. Those that cannot have theirs run on: on
// CPUs that they share, and without the devices until they start again.
func assignOwn(t *admission.Table, shared *worker.Pool, checkpoints []*checkpoint.Checkpoint) {
	t.Assign(shared.CPUs, shared.Devices, checkpoints, func(p *manifests.Pod, r *admission.Rejection) {
		shared.Log.Warn("pod runs without CPUs or devices of its own: it cannot have them", "pod", p.Key().String(), "reason", r.Reason, "err", r.Message)
		shared.Events.Record(events.About(p.Pod), v1.EventTypeWarning, r.Reason, r.Message)
	})
}
