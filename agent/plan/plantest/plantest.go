// Package plantest builds the situations that the tests of plans and statuses use: a pod, what the
// runtime has of it, and what was reported.
package plantest

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/manifests"
)

// Noon is the time of all plans.
var Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// Scene builds Facts. Its zero value has the desired pod, and observes nothing.
type Scene struct {
	Pod      *v1.Pod
	Nothing  bool // no pod is desired under this name
	Accepted bool // the desired pod's checkpoint is on disk
	Retired  bool // and marks the instance for removal
	Digest   string
	Ended    v1.PodPhase
	Old      *pleg.Instance // of uid "old", with a checkpoint
	Here     *pleg.Instance // of the desired uid
	Failures map[string]plan.Failure
	Logged   map[string]uint32
	Fetching map[string]plan.Pull
	Change   func(*plan.Facts) // changes the facts; nil: no change
}

// Facts returns the facts of the scene, at noon.
func (c Scene) Facts() plan.Facts {
	s := plan.Facts{Now: Noon, Known: map[string]*checkpoint.Checkpoint{}, Observed: &pleg.Observed{Instances: map[string]*pleg.Instance{}},
		Failures: c.Failures, Next: c.Logged, Fetching: c.Fetching, Runtime: "fake"}
	if !c.Nothing {
		s.Pod = &manifests.Pod{Pod: c.Pod, Digest: "d1"}
	}
	if c.Accepted {
		k := checkpoint.NewCheckpoint(&manifests.Pod{Pod: c.Pod, Digest: "d1"}, metav1.Time{Time: Noon})
		if c.Digest != "" {
			k.Digest = c.Digest
		}
		if c.Retired {
			k = k.Removing(metav1.Time{Time: Noon}, checkpoint.Mark{})
		}
		if c.Ended != "" {
			k = k.WithEnd(v1.PodStatus{Phase: c.Ended})
		}
		s.Known[k.Uid()] = k
	}
	if c.Old != nil {
		p := c.Pod.DeepCopy()
		p.UID = "old"
		s.Known["old"] = checkpoint.NewCheckpoint(&manifests.Pod{Pod: p, Digest: "d0"}, metav1.Time{})
		c.Old.UID = "old"
		c.Old.Sort()
		s.Observed.Instances["old"] = c.Old
	}
	if c.Here != nil {
		c.Here.UID = "u"
		c.Here.Sort()
		s.Observed.Instances["u"] = c.Here
	}
	if c.Change != nil {
		c.Change(&s)
	}
	return s
}

// Pod returns a host-network pod with these regular containers.
func Pod(policy v1.RestartPolicy, names ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-n", Namespace: "default", UID: "u"},
		Spec: v1.PodSpec{RestartPolicy: policy, HostNetwork: true}}
	for _, n := range names {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: n, Image: "img:1"})
	}
	return p
}

// WithInit adds init containers to the pod.
func WithInit(p *v1.Pod, names ...string) *v1.Pod {
	for _, n := range names {
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: n, Image: "img:1"})
	}
	return p
}

// WithSidecar adds an init container that keeps running to the pod.
func WithSidecar(p *v1.Pod, name string) *v1.Pod {
	always := v1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: name, Image: "img:1", RestartPolicy: &always})
	return p
}

// World returns an instance with sandbox "s0" and these containers.
func World(cs ...pleg.Container) *pleg.Instance {
	return &pleg.Instance{Sandboxes: []pleg.Sandbox{{ID: "s0", Ready: true, HostNetwork: true}}, Containers: cs}
}

// Up returns a container of this name and attempt that has run for a minute.
func Up(name string, attempt uint32) pleg.Container {
	return pleg.Container{ID: fmt.Sprintf("%s%d", name, attempt), Name: name, Sandbox: "s0", Attempt: attempt,
		State: rt.ContainerState_CONTAINER_RUNNING, Started: Noon.Add(-time.Minute), Grace: 30 * time.Second}
}

// Exit returns a container that exited with this code the duration ago before noon, after a run of
// a minute.
func Exit(name string, attempt uint32, code int32, ago time.Duration, mark string) pleg.Container {
	c := Up(name, attempt)
	c.State, c.ExitCode, c.Reason, c.BackOff = rt.ContainerState_CONTAINER_EXITED, code, "Error", mark
	if code == 0 {
		c.Reason = "Completed"
	}
	c.Finished = Noon.Add(-ago)
	c.Started = c.Finished.Add(-time.Minute)
	return c
}

// In returns a container in another state.
func In(state rt.ContainerState, name string) pleg.Container {
	c := Up(name, 0)
	c.State = state
	return c
}

// Probed adds probes of each kind to the pod's container of this name.
func Probed(p *v1.Pod, name string) *v1.Pod {
	pr := &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"x"}}}}
	c := podspec.FindContainer(p, name)
	c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = pr.DeepCopy(), pr.DeepCopy(), pr.DeepCopy()
	return p
}

// With returns a changed copy of the container.
func With(c pleg.Container, change func(*pleg.Container)) pleg.Container {
	change(&c)
	return c
}

// Condemned returns the container with a kill decision and a grace period of 7 s.
func Condemned(c pleg.Container) pleg.Container {
	return With(c, func(c *pleg.Container) {
		c.Kill = &checkpoint.KillDecision{Reason: "Container a failed liveness probe, will be restarted", Text: "Liveness probe failed: x", Grace: 7 * time.Second}
	})
}

// Reported returns a status with the container states of the lines, each "name#count state [code]":
// "a#2 running" or "a#0 exited 3". The id of a container is its name and the count.
func Reported(pod *v1.Pod, lines ...string) *v1.PodStatus {
	st := &v1.PodStatus{StartTime: &metav1.Time{Time: Noon.Add(-time.Hour)}}
	for _, l := range lines {
		var c v1.ContainerStatus
		var how string
		code := int32(0)
		fmt.Sscanf(strings.Replace(l, "#", " ", 1), "%s %d %s %d", &c.Name, &c.RestartCount, &how, &code)
		c.ContainerID = fmt.Sprintf("fake://%s%d", c.Name, c.RestartCount)
		switch how {
		case "running":
			c.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: Noon.Add(-time.Minute)}}
		case "exited":
			c.State.Terminated = &v1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}
		case "waits":
			c.State.Waiting = &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
			c.LastTerminationState.Terminated = &v1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}
		}
		if podspec.IsInit(pod, &v1.Container{Name: c.Name}) {
			st.InitContainerStatuses = append(st.InitContainerStatuses, c)
		} else {
			st.ContainerStatuses = append(st.ContainerStatuses, c)
		}
	}
	return st
}
