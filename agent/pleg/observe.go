package pleg

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/podspec"
	"monopod/cri"
	"monopod/manifests"
	"monopod/manifests/defaults"
)

// Observer reads one pod name from the runtime. It reads constant data only once. It belongs to the
// worker of that pod.
type Observer struct {
	cri      *cri.Client
	lister   *Lister
	key      manifests.Key
	statuses map[string]*seen                // by container id, of the last observed state
	networks map[string]*rt.PodSandboxStatus // by sandbox id
	Seen     atomic.Uint64                   // fingerprint of the last observation; any goroutine may read it
	born     time.Time
	before   time.Time             // when the pod was last observed; zero: never
	Ended    []*rt.ContainerStatus // containers that ended since the caller cleared it, for metrics
}

func NewObserver(c *cri.Client, l *Lister, key manifests.Key) *Observer {
	return &Observer{cri: c, lister: l, key: key, born: time.Now(),
		statuses: map[string]*seen{}, networks: map[string]*rt.PodSandboxStatus{}}
}

// Observe returns all instances of the pod that belong to this agent.
func (o *Observer) Observe(ctx context.Context) (*Observed, error) {
	start := time.Now()
	_, err := o.lister.List(ctx)
	if err != nil {
		return nil, err
	}
	mine := o.lister.index.of(o.key)
	o.Seen.Store(mine.print)
	sandboxes, containers := mine.Sandboxes, mine.Containers
	out := &Observed{Instances: map[string]*Instance{}, All: &o.lister.index}
	of := func(uid string) *Instance {
		if out.Instances[uid] == nil {
			out.Instances[uid] = &Instance{UID: uid}
		}
		return out.Instances[uid]
	}
	for _, s := range sandboxes {
		seen, err := o.sandbox(ctx, s)
		if cri.NotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		i := of(s.Labels[podspec.LabelPodUID])
		i.Sandboxes = append(i.Sandboxes, seen)
	}
	for _, c := range containers {
		seen, err := o.container(ctx, c)
		if cri.NotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		i := of(c.Labels[podspec.LabelPodUID])
		i.Containers = append(i.Containers, seen)
	}
	for _, i := range out.Instances {
		i.Sort()
	}
	o.forget(sandboxes, containers)
	o.before = start
	return out, nil
}

// sandbox completes a listed sandbox. It requests the addresses of a ready one until there are
// some; they do not change afterwards.
func (o *Observer) sandbox(ctx context.Context, s *rt.PodSandbox) (Sandbox, error) {
	out := Sandbox{
		ID: s.Id, Attempt: s.Metadata.GetAttempt(), Created: time.Unix(0, s.CreatedAt),
		Ready: s.State == rt.PodSandboxState_SANDBOX_READY,
	}
	st := o.networks[s.Id]
	if st == nil && out.Ready {
		var err error
		if st, err = o.cri.SandboxStatus(ctx, s.Id); err != nil {
			return out, err
		}
		o.Know(s.Id, st)
	}
	if st == nil {
		return out, nil
	}
	if out.HostNetwork = hostNetwork(st); out.HostNetwork || !out.Ready {
		return out, nil
	}
	out.IPs = Addresses(st)
	out.Unknown = st.Network == nil || st.GetLinux().GetNamespaces().GetOptions() == nil && len(out.IPs) == 0
	return out, nil
}

// Know keeps the status of a sandbox, if it has the addresses.
func (o *Observer) Know(id string, st *rt.PodSandboxStatus) {
	if hostNetwork(st) || st.GetNetwork().GetIp() != "" {
		o.networks[id] = st
	}
}

func hostNetwork(st *rt.PodSandboxStatus) bool {
	return st.GetLinux().GetNamespaces().GetOptions().GetNetwork() == rt.NamespaceMode_NODE
}

// container completes a listed container with its status in this state.
func (o *Observer) container(ctx context.Context, c *rt.Container) (Container, error) {
	known := o.statuses[c.Id]
	if known == nil || known.State != c.State || known.stale {
		st, err := o.cri.ContainerStatus(ctx, c.Id)
		if err != nil {
			return Container{}, err
		}
		now := known.next(st, o.before, time.Now())
		if justEnded(known, now, o.born) {
			o.Ended = append(o.Ended, st)
		}
		known, o.statuses[c.Id] = now, now
	}
	known.last = time.Now()
	st := known.ContainerStatus
	out := Container{
		ID: c.Id, Name: c.Metadata.GetName(), Sandbox: c.PodSandboxId, Attempt: c.Metadata.GetAttempt(), State: st.State,
		Created: stamp(c.CreatedAt), Started: known.started, Finished: known.finished,
		ExitCode: st.ExitCode, Reason: st.Reason, Message: st.Message, BrokenOff: cri.BrokenOff(st),
		Image: st.Image.GetImage(), ImageRef: st.ImageRef, BackOff: c.Annotations[podspec.AnnBackoff], EnvObjects: c.Annotations[podspec.AnnEnvObjects],
		PreStop: c.Annotations[podspec.AnnPreStop], Ports: c.Annotations[podspec.AnnPorts], Status: st,
	}
	path := c.Annotations[podspec.AnnMessagePath]
	for _, m := range st.Mounts {
		if path != "" && m.ContainerPath == path {
			out.TerminationLog = m.HostPath
		}
	}
	out.Revision, _ = strconv.Atoi(c.Annotations[podspec.AnnRevision])
	if s, err := strconv.ParseInt(c.Annotations[podspec.AnnTerminationGrace], 10, 64); err == nil {
		out.Grace = defaults.Seconds(s)
	}
	return out, nil
}

// Reread makes the next observation request a container's status even if its state is unchanged.
func (o *Observer) Reread(id string) {
	if known := o.statuses[id]; known != nil {
		known.stale = true
	}
}

// stamp converts a CRI time, nanoseconds since 1970 or none, into a time.
func stamp(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// forget drops the statuses of sandboxes and containers that are gone.
func (o *Observer) forget(sandboxes []*rt.PodSandbox, containers []*rt.Container) {
	for id := range o.networks {
		if !slices.ContainsFunc(sandboxes, func(s *rt.PodSandbox) bool { return s.Id == id }) {
			delete(o.networks, id)
		}
	}
	for id := range o.statuses {
		if !slices.ContainsFunc(containers, func(c *rt.Container) bool { return c.Id == id }) {
			delete(o.statuses, id)
		}
	}
}

// Addresses returns the sandbox's addresses, primary first.
func Addresses(st *rt.PodSandboxStatus) []string {
	var ips []string
	if ip := st.GetNetwork().GetIp(); ip != "" {
		ips = append(ips, ip)
	}
	for _, more := range st.GetNetwork().GetAdditionalIps() {
		ips = append(ips, more.Ip)
	}
	return ips
}
