package checkpoint

import (
	"maps"
	"slices"

	"monopod/agent/update"
	"monopod/cgroups"
	"monopod/manifests"
)

// Following is what must still follow a version that was accepted in place, besides the restart of
// containers.
type Following struct {
	Resize []string           `json:"resize,omitempty"` // containers that may have former cpu and memory
	Former *cgroups.Resources `json:"former,omitempty"` // the former values of the pod's cgroup, which keeps the larger ones until all fits; nil: no other ones
	Raised bool               `json:"raised,omitempty"` // volumes are updated, and the cgroup has the larger values
}

// Updated returns a copy that records that another version of the pod is accepted; v is how it
// differs. former: the values of the pod's cgroup so far. hooked: containers, with the ids of their
// attempts, that started before they had a postStart hook.
func (c *Checkpoint) Updated(p *manifests.Pod, v update.Verdict, former cgroups.Resources, hooked map[string]string) *Checkpoint {
	d, pod := *c, *p.Pod
	pod.Status = c.Pod.Status
	d.Pod, d.File, d.Digest = &pod, p.File, p.Digest
	if v.Kind == update.Nothing {
		return &d
	}
	d.Revision++
	d.Bounded = !p.Unbounded
	d.Changed, d.HooksDone = maps.Clone(c.Changed), maps.Clone(c.HooksDone)
	for _, name := range v.Named(update.Restart) {
		if d.Changed == nil {
			d.Changed = map[string]int{}
		}
		d.Changed[name] = d.Revision
	}
	for name, id := range hooked {
		if d.HooksDone == nil {
			d.HooksDone = map[string]string{}
		}
		d.HooksDone[name] = id
	}
	d.Following = c.Following.with(v, former)
	return &d
}

// with returns what must follow once another version is accepted in addition.
func (f *Following) with(v update.Verdict, former cgroups.Resources) *Following {
	out := &Following{Resize: v.Named(update.Resize), Former: &former}
	if f == nil {
		return out
	}
	for _, name := range f.Resize {
		if !slices.Contains(out.Resize, name) && !slices.Contains(v.Named(update.Restart), name) {
			out.Resize = append(out.Resize, name)
		}
	}
	if f.Former != nil {
		*out.Former = former.Larger(*f.Former)
	}
	return out
}

// WithFollowing returns a copy in which f must still follow; nil: nothing.
func (c *Checkpoint) WithFollowing(f *Following) *Checkpoint {
	d := *c
	d.Following = f
	return &d
}

// Resized returns a copy that records that a container has its cpu and memory, or if restarts is
// set, that it gets them by a restart.
func (c *Checkpoint) Resized(name string, restarts bool) *Checkpoint {
	d := *c
	if restarts {
		if d.Changed = maps.Clone(c.Changed); d.Changed == nil {
			d.Changed = map[string]int{}
		}
		d.Changed[name] = c.Revision
	}
	if c.Following != nil {
		f := *c.Following
		f.Resize = slices.DeleteFunc(slices.Clone(f.Resize), func(n string) bool { return n == name })
		d.Following = &f
	}
	return &d
}
