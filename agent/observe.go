package agent

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/manifests"
)

// observed is what the runtime has under one pod name: normally one instance,
// more while an old one makes way for a new one.
type observed struct {
	Instances map[string]*instance // by pod uid
	all       *listing             // that this is of; nil: nothing is known of other names
}

// instance is what the runtime has of one pod uid.
type instance struct {
	UID        string
	Sandboxes  []sandbox       // newest first
	Containers []container     // newest first
	Lost       map[string]bool // containers whose newest attempt somebody removed: those here are older
}

// sandbox is one sandbox as the runtime describes it.
type sandbox struct {
	ID          string
	Attempt     uint32
	Ready       bool
	HostNetwork bool
	IPs         []string // empty while not ready, and for host-network pods
	Created     time.Time
}

// container is one container as the runtime describes it.
type container struct {
	ID, Name, Sandbox string
	Attempt           uint32
	State             rt.ContainerState
	Created           time.Time
	Started, Finished time.Time // zero when the runtime does not know
	ExitCode          int32
	Reason, Message   string
	Image, ImageRef   string
	TerminationLog    string // host path of the file mounted for termination messages
	Grace             time.Duration
	BackOff           string     // what the agent waited before this attempt, "" for a first start
	PreStop, Ports    string     // the preStop hook and the ports it may name, as JSON; "": none
	Condemned         *condemned // the agent has decided to stop it; nil: it has not
	status            *rt.ContainerStatus
}

func (c *container) running() bool { return c.State == rt.ContainerState_CONTAINER_RUNNING }
func (c *container) exited() bool  { return c.State == rt.ContainerState_CONTAINER_EXITED }

// live reports whether the container may have processes, or may get some.
func (c *container) live() bool { return !c.exited() }

// newest returns the newest container of that name, or nil if it is not there.
func (i *instance) newest(name string) *container {
	if i == nil || i.Lost[name] {
		return nil
	}
	for k := range i.Containers {
		if i.Containers[k].Name == name {
			return &i.Containers[k]
		}
	}
	return nil
}

// begun returns the newest container of that name that was ever started, or nil.
func (i *instance) begun(name string) *container {
	if i == nil || i.Lost[name] {
		return nil
	}
	for k := range i.Containers {
		if c := &i.Containers[k]; c.Name == name && c.State != rt.ContainerState_CONTAINER_CREATED {
			return c
		}
	}
	return nil
}

// sandbox returns the newest sandbox, or nil.
func (i *instance) sandbox() *sandbox {
	if i == nil || len(i.Sandboxes) == 0 {
		return nil
	}
	return &i.Sandboxes[0]
}

// observer reads one pod name from the runtime. What cannot change any more is
// read once. It belongs to the worker of that pod.
type observer struct {
	cri      *cri.Client
	lister   *lister
	key      manifests.Key
	statuses map[string]*rt.ContainerStatus  // by container id, of the state seen last
	networks map[string]*rt.PodSandboxStatus // by sandbox id
	seen     atomic.Uint64                   // fingerprint of what was observed last; any goroutine may read it
	born     time.Time
	ended    []*rt.ContainerStatus // containers that ended meanwhile, for those who count
}

func newObserver(c *cri.Client, l *lister, key manifests.Key) *observer {
	return &observer{cri: c, lister: l, key: key, born: time.Now(),
		statuses: map[string]*rt.ContainerStatus{}, networks: map[string]*rt.PodSandboxStatus{}}
}

// observe returns all instances of the pod that carry this agent's mark.
func (o *observer) observe(ctx context.Context) (*observed, error) {
	all, err := o.lister.list(ctx)
	if err != nil {
		return nil, err
	}
	mine := all.pods[o.key]
	if mine == nil {
		mine = &listed{}
	}
	o.seen.Store(mine.fingerprint())
	sandboxes, containers := mine.sandboxes, mine.containers
	out := &observed{Instances: map[string]*instance{}, all: all}
	of := func(uid string) *instance {
		if out.Instances[uid] == nil {
			out.Instances[uid] = &instance{UID: uid}
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
		i := of(s.Labels[labelPodUID])
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
		i := of(c.Labels[labelPodUID])
		i.Containers = append(i.Containers, seen)
	}
	for _, i := range out.Instances {
		i.sort()
	}
	o.forget(sandboxes, containers)
	return out, nil
}

func (i *instance) sort() {
	slices.SortFunc(i.Sandboxes, func(a, b sandbox) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(i.Containers, func(a, b container) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
}

// sandbox completes a listed sandbox. A ready one is asked for its addresses
// until it has some; they do not change afterwards.
func (o *observer) sandbox(ctx context.Context, s *rt.PodSandbox) (sandbox, error) {
	out := sandbox{
		ID: s.Id, Attempt: s.Metadata.GetAttempt(), Created: time.Unix(0, s.CreatedAt),
		Ready: s.State == rt.PodSandboxState_SANDBOX_READY,
	}
	st := o.networks[s.Id]
	if st == nil && out.Ready {
		var err error
		if st, err = o.cri.SandboxStatus(ctx, s.Id); err != nil {
			return out, err
		}
		if hostNetwork(st) || st.Network.GetIp() != "" {
			o.networks[s.Id] = st
		}
	}
	if st == nil {
		return out, nil
	}
	if out.HostNetwork = hostNetwork(st); out.HostNetwork || !out.Ready {
		return out, nil
	}
	if ip := st.Network.GetIp(); ip != "" {
		out.IPs = append(out.IPs, ip)
	}
	for _, more := range st.Network.GetAdditionalIps() {
		out.IPs = append(out.IPs, more.Ip)
	}
	return out, nil
}

func hostNetwork(st *rt.PodSandboxStatus) bool {
	return st.GetLinux().GetNamespaces().GetOptions().GetNetwork() == rt.NamespaceMode_NODE
}

// container completes a listed container with its status of this state.
func (o *observer) container(ctx context.Context, c *rt.Container) (container, error) {
	st := o.statuses[c.Id]
	if st == nil || st.State != c.State {
		var err error
		was := st
		if st, err = o.cri.ContainerStatus(ctx, c.Id); err != nil {
			return container{}, err
		}
		if justEnded(was, st, o.born) {
			o.ended = append(o.ended, st)
		}
		o.statuses[c.Id] = st
	}
	out := container{
		ID: c.Id, Name: c.Metadata.GetName(), Sandbox: c.PodSandboxId, Attempt: c.Metadata.GetAttempt(), State: st.State,
		Created: stamp(c.CreatedAt), Started: stamp(st.StartedAt), Finished: stamp(st.FinishedAt),
		ExitCode: st.ExitCode, Reason: st.Reason, Message: st.Message,
		Image: st.Image.GetImage(), ImageRef: st.ImageRef, BackOff: c.Annotations[annBackoff],
		PreStop: c.Annotations[annPreStop], Ports: c.Annotations[annPorts], status: st,
	}
	path := c.Annotations[annMessagePath]
	for _, m := range st.Mounts {
		if path != "" && m.ContainerPath == path {
			out.TerminationLog = m.HostPath
		}
	}
	if s, err := strconv.Atoi(c.Annotations[annTerminationGrace]); err == nil {
		out.Grace = time.Duration(s) * time.Second
	}
	return out, nil
}

// stamp turns a CRI time, nanoseconds since 1970 or 0 for none, into a time.
func stamp(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// forget drops what was remembered of things that are gone.
func (o *observer) forget(sandboxes []*rt.PodSandbox, containers []*rt.Container) {
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
