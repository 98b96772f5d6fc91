package pleg

import (
	"cmp"
	"slices"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/oom"
)

// MarkKills sets the kill decisions of containers, by id.
func (i *Instance) MarkKills(all map[string]checkpoint.KillDecision) {
	for k := range i.Containers {
		if kill, ok := all[i.Containers[k].ID]; ok {
			i.Containers[k].Kill = &kill
		}
	}
}

// MarkExcused sets how many attempts of each container, by name, ended by an interruption.
func (i *Instance) MarkExcused(all map[string]uint32) {
	for k := range i.Containers {
		i.Containers[k].Excused = all[i.Containers[k].Name]
	}
}

// Has reports whether the instance has a container with this id.
func (i *Instance) Has(id string) bool { return i.Find(id) != nil }

// Find returns the container with this id, or nil.
func (i *Instance) Find(id string) *Container {
	for k := range i.Containers {
		if i.Containers[k].ID == id {
			return &i.Containers[k]
		}
	}
	return nil
}

// MarkMissing records that the runtime lacks the newest attempt of the container.
func (i *Instance) MarkMissing(name string) {
	if i.Missing == nil {
		i.Missing = map[string]bool{}
	}
	i.Missing[name] = true
}

// Observed is what the runtime has under one pod name: normally one instance,
// more while a new one replaces an old one.
type Observed struct {
	Instances map[string]*Instance // by pod uid
	All       *index               // of all pod names; nil: not known
}

// Instance is what the runtime has of one pod uid.
type Instance struct {
	UID        string
	Sandboxes  []Sandbox       // newest first
	Containers []Container     // newest first
	Missing    map[string]bool // containers whose newest attempt is missing: the attempts here are older
}

// Sandbox is one sandbox as the runtime describes it.
type Sandbox struct {
	ID          string
	Attempt     uint32
	Ready       bool
	HostNetwork bool
	IPs         []string // empty while not ready, and for host-network pods
	Unknown     bool     // it is ready, and the runtime does not report its network
	Created     time.Time
}

// Container is one container as the runtime describes it.
type Container struct {
	ID, Name, Sandbox string
	Attempt           uint32
	Revision          int // revision of the pod's version that it was created for
	State             rt.ContainerState
	Created           time.Time
	Started, Finished time.Time // zero if the runtime does not know
	ExitCode          int32
	Reason, Message   string
	Image, ImageRef   string
	TerminationLog    string // host path of the file mounted for termination messages
	Grace             time.Duration
	BackOff           string                   // the back-off before this attempt, "" for a first start
	EnvObjects        string                   // what its variables were made of, see objects.Set.EnvOf; "": not recorded
	PreStop, Ports    string                   // the preStop hook and the ports it may name, as JSON; "": none
	Kill              *checkpoint.KillDecision // nil: none
	OOM               *oom.Kill                // of one of its processes, by which it ended; nil: none is known
	Lost              bool                     // its state is unknown: the runtime lists it as running, and its process is gone
	BrokenOff         bool                     // its start was, see cri.BrokenOff: that is no failure of its own
	Outdated          bool                     // a later version of it was accepted
	Excused           uint32                   // the number of attempts that did not end by themselves
	Status            *rt.ContainerStatus
}

func (c *Container) Running() bool { return c.State == rt.ContainerState_CONTAINER_RUNNING }

func (c *Container) Exited() bool { return c.State == rt.ContainerState_CONTAINER_EXITED }

// Live reports whether the container has not exited: it may have processes, or get some.
func (c *Container) Live() bool { return !c.Exited() }

// Created returns the ids of the containers that were created and never started: the one with this
// id, or those in the sandbox with this id.
func (i *Instance) Created(id string) (ids []string) {
	if i == nil {
		return nil
	}
	for k := range i.Containers {
		if c := &i.Containers[k]; c.State == rt.ContainerState_CONTAINER_CREATED && (c.ID == id || c.Sandbox == id) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Newest returns the newest container of this name, or nil if it is missing.
func (i *Instance) Newest(name string) *Container {
	if i == nil || i.Missing[name] {
		return nil
	}
	for k := range i.Containers {
		if i.Containers[k].Name == name {
			return &i.Containers[k]
		}
	}
	return nil
}

// NewestStarted returns the newest container of this name that was ever started, or nil.
func (i *Instance) NewestStarted(name string) *Container {
	if i == nil || i.Missing[name] {
		return nil
	}
	for k := range i.Containers {
		if c := &i.Containers[k]; c.Name == name && c.State != rt.ContainerState_CONTAINER_CREATED {
			return c
		}
	}
	return nil
}

// Sandbox returns the newest sandbox, or nil.
func (i *Instance) Sandbox() *Sandbox {
	if i == nil || len(i.Sandboxes) == 0 {
		return nil
	}
	return &i.Sandboxes[0]
}

func (i *Instance) Sort() {
	slices.SortFunc(i.Sandboxes, func(a, b Sandbox) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(i.Containers, func(a, b Container) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
}

func (i *Instance) AnyAlive() bool {
	if i == nil {
		return false
	}
	for k := range i.Containers {
		if i.Containers[k].Alive() {
			return true
		}
	}
	return false
}

// MarkReplaced sets a kill decision for all containers of a sandbox that a restart request
// replaces. They start again whatever their exit code.
func (i *Instance) MarkReplaced(sandbox string) {
	for k := range i.Containers {
		if n := &i.Containers[k]; sandbox != "" && n.Sandbox == sandbox {
			n.Kill = &checkpoint.KillDecision{Cause: checkpoint.CauseRequest, Reason: checkpoint.RestartRequested, Grace: n.Grace, Requested: true}
		}
	}
}

// Alive reports whether the container runs, or may run.
func (c *Container) Alive() bool {
	return c.Running() || c.State == rt.ContainerState_CONTAINER_UNKNOWN
}

// Before returns the attempt before n, if the runtime still has it and it exited.
func (i *Instance) Before(n *Container) *Container {
	for k := range i.Containers {
		if c := &i.Containers[k]; c.Name == n.Name && c.ID != n.ID && c.Exited() && c.Attempt < n.Attempt {
			return c
		}
	}
	return nil
}
