// Package inplace carries out the update of a running pod to its next version.
package inplace

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/instance"
	"monopod/agent/plan"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cri"
	"monopod/manifests"
)

// Apply carries out an action on what the machine has of the pod, and returns the checkpoint that
// must be saved then. next is the desired version.
func Apply(ctx context.Context, f *instance.Files, c *checkpoint.Checkpoint, next *manifests.Pod, a plan.Action) (*checkpoint.Checkpoint, error) {
	n := f.Disk.Machine.Now()
	switch a.Do {
	case plan.DoUpdate:
		return c.Updated(next, *a.Change, podspec.PodCgroup(c.Pod, n), a.Hooked), nil
	case plan.DoFollow:
		return follow(ctx, f, c, n)
	case plan.DoRestartResized:
		return c.Resized(a.Name, true), nil
	case plan.DoSettle:
		return settle(ctx, f, c, n)
	}
	return c, fmt.Errorf("unknown action %q", a.Do)
}

// follow updates the volumes and lets the pod's cgroup grow; it shrinks only after its containers
// have.
func follow(ctx context.Context, f *instance.Files, c *checkpoint.Checkpoint, n *podspec.Host) (*checkpoint.Checkpoint, error) {
	if _, err := f.SetUpVolumes(ctx, c.Version(), n); err != nil {
		return c, plan.Because("FailedMount", err)
	}
	left := *c.Following
	now := podspec.PodCgroup(c.Pod, n)
	same := left.Former != nil && left.Former.Shares == now.Shares && left.Former.Quota == now.Quota && left.Former.Memory == now.Memory
	if left.Former == nil || same && len(left.Resize) == 0 {
		return c.WithFollowing(nil), nil
	}
	left.Raised = true
	err := f.Disk.Cgroups.Update(ctx, c.Pod, now.Larger(*left.Former))
	return c.WithFollowing(&left), plan.Because("FailedUpdatePodContainer", err)
}

// settle sets the pod's cgroup to the values of its version, but not to less memory than it uses.
func settle(ctx context.Context, f *instance.Files, c *checkpoint.Checkpoint, n *podspec.Host) (*checkpoint.Checkpoint, error) {
	now := podspec.PodCgroup(c.Pod, n)
	if takesMemory(c.Following.Former, now.Memory) {
		used, err := f.Disk.Cgroups.MemoryInUse(c.Pod)
		switch {
		case err != nil:
			return c, plan.Because("FailedUpdatePodContainer", fmt.Errorf("the memory that the pod uses is not known: %w", err))
		case used > now.Memory:
			return c, plan.Because(plan.ReasonInUse, fmt.Errorf("the pod uses %s of memory, its volumes in memory included, and is to have %s: it is resized once it uses less",
				amount(uint64(used)), amount(uint64(now.Memory))))
		}
	}
	err := f.Disk.Cgroups.Update(ctx, c.Pod, now)
	return c.WithFollowing(nil), plan.Because("FailedUpdatePodContainer", err)
}

// takesMemory reports whether a limit is lower than before; 0: no limit.
func takesMemory(former *cgroups.Resources, limit int64) bool {
	return limit > 0 && (former == nil || former.Memory <= 0 || limit < former.Memory)
}

// Resize sets the cpu and memory of a running container to those of its pod's version, but not to
// less memory than it uses.
func Resize(ctx context.Context, c *cri.Client, p *v1.Pod, a plan.Action, n *podspec.Host) error {
	r := podspec.ContainerResources(p, podspec.FindContainer(p, a.Name), n)
	if r.MemoryLimitInBytes > 0 {
		used, err := usedBy(ctx, c, a)
		if err != nil {
			return err
		}
		if used > uint64(r.MemoryLimitInBytes) {
			return plan.Because(plan.ReasonInUse, fmt.Errorf("container %s uses %s of memory and is to have %s: it is resized once it uses less",
				a.Name, amount(used), amount(uint64(r.MemoryLimitInBytes))))
		}
	}
	err := c.UpdateContainer(ctx, a.ID, r)
	if err == nil || cri.Unavailable(err) || cri.Busy(err) || ctx.Err() != nil {
		return err
	}
	return plan.Because(plan.ReasonRefused, err)
}

// usedBy returns how many bytes of memory a container uses that cannot be reclaimed; 0: the runtime
// does not report it.
func usedBy(ctx context.Context, c *cri.Client, a plan.Action) (uint64, error) {
	all, err := c.ContainerStats(ctx, map[string]string{podspec.LabelPodUID: a.UID})
	if err != nil && !cri.Unimplemented(err) {
		return 0, err
	}
	for _, st := range all {
		if st.GetAttributes().GetId() == a.ID {
			return used(st.GetMemory()), nil
		}
	}
	return 0, nil
}

func used(m *rt.MemoryUsage) uint64 {
	if w := m.GetWorkingSetBytes(); w != nil {
		return w.Value
	}
	return m.GetUsageBytes().GetValue()
}

func amount(bytes uint64) string {
	return resource.NewQuantity(int64(bytes), resource.BinarySI).String()
}
