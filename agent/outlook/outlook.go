// Package outlook computes what manifests would change of the present pods.
package outlook

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/objects"
	"monopod/agent/rollout"
	"monopod/agent/update"
	"monopod/manifests"
)

// Report is the expected change of the pods.
type Report struct {
	Pods    []Pod `json:"pods"`    // sorted by name
	Changes int   `json:"changes"` // the number of pods that would change, or have objects with other contents
}

// Pod is the expected change of one pod.
type Pod struct {
	Name       string          `json:"pod"`            // namespace/name
	File       string          `json:"file,omitempty"` // the file that gives it, as named in the request
	Action     Action          `json:"action"`
	Reason     string          `json:"reason,omitempty"`     // why it is replaced or restarted: the fields, or another reason
	Difference *update.Verdict `json:"difference,omitempty"` // of an existing pod that would change
	Waits      string          `json:"waits,omitempty"`      // what the change would wait for, or the pod waits for: holds, the update window, the lock of its workload, its turn, room, what it lacks
	Trial      string          `json:"trial,omitempty"`      // what would roll it back to the running version
	RolledBack string          `json:"rolledBack,omitempty"` // that it was rolled back, or a person requested that, when and why: the former version stays
	Objects    []string        `json:"objects,omitempty"`    // the effects of other contents of ConfigMaps and Secrets
}

// Action is the expected action on a pod.
type Action string

// The actions.
const (
	New       Action = "new"
	Removed   Action = "removed"
	Unchanged Action = "unchanged"
	Updated   Action = "updated"   // in place, and nothing restarts
	Resized   Action = "resized"   // in place: containers get other cpu and memory
	Restarted Action = "restarted" // in place: containers restart
	Replaced  Action = "replaced"  // the pod is stopped, and created again
)

// planned are the actions by kind of update.
var planned = map[update.Kind]Action{
	update.Nothing: Unchanged, update.Live: Updated, update.Resize: Resized, update.Restart: Restarted, update.Replace: Replaced,
}

// starts reports whether something of the pod starts.
func (a Action) starts() bool { return a == New || a == Restarted || a == Replaced }

// Node is the present state. Its funcs change nothing.
type Node struct {
	World     *rollout.World
	Objects   *objects.Set                        // the ConfigMaps and Secrets
	NoObjects bool                                // the objects are not known
	Names     []manifests.Key                     // the names of all pods
	Record    func(manifests.Key) rollout.Record  // the record of a pod name
	Reported  func(manifests.Key) (*v1.Pod, bool) // the last report of a pod

	known map[manifests.Key]bool // the names that would exist
	after *objects.Set           // the objects that would exist
}

// Of returns the expected changes if the manifests gave what is requested.
func (n *Node) Of(a *Asked) Report {
	next := n.with(a)
	r := Report{Pods: []Pod{}}
	for _, p := range a.Pods {
		r.add(next.given(p.version()))
	}
	for _, key := range n.Names {
		if !next.known[key] {
			r.add(next.others(key, a.Whole))
		}
	}
	slices.SortFunc(r.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// with returns the node as it would be.
func (n *Node) with(a *Asked) *Node {
	next, w := *n, *n.World
	next.World, next.known, next.after = &w, map[manifests.Key]bool{}, n.Objects.With(a.objects())
	for _, p := range a.Pods {
		next.known[manifests.KeyOf(p.Pod)] = true
	}
	was := w.Names.Has
	w.Names.Has = func(key manifests.Key) bool { return next.known[key] || was(key) }
	return &next
}

// add adds a pod that has something to report.
func (r *Report) add(p Pod) {
	if p.Name == "" {
		return
	}
	r.Pods = append(r.Pods, p)
	if p.Action != Unchanged || len(p.Objects) > 0 {
		r.Changes++
	}
}

// given returns the expected change of a pod if the manifests give this version.
func (n *Node) given(p *manifests.Pod) Pod {
	was := n.Record(p.Key())
	version, trial := was.Chosen(p, n.World)
	r := rollout.Foresee(was, version, n.World)
	out := Pod{Name: p.Key().String(), Action: New}
	of, over := r.Identity()
	switch {
	case of != nil:
		written := [2]*manifests.Pod{was.Trial.Original(of), trial.Original(r.Offered)}
		out.becomes(change{of, r.Offered, written}, n.World.Policy, over)
	case was.Offered != nil && manifests.Same(was.Offered, r.Offered):
		out.Action = Unchanged // it has yet to start, and waits
	}
	out.Waits = n.waits(&r, out.Action)
	out.onTrial(trial, p, version, n.World.Limits(p))
	out.Objects = n.edits(&out, &r)
	return out
}

// change is the change from one version of a pod to the next. A restored one has the images that it
// ran with; written are both versions as their manifests gave them.
type change struct {
	of, next *manifests.Pod
	written  [2]*manifests.Pod
}

// verdict returns the verdict of the change, with the fields as the manifests have them where these
// show it.
func (c change) verdict(policy string) update.Verdict {
	v := update.Planned(c.of, c.next, policy)
	if written := update.Planned(c.written[0], c.written[1], policy); written.Kind == v.Kind {
		return written
	}
	return v
}

// becomes sets how one version of a pod replaces another. over: the latter has ended.
func (p *Pod) becomes(c change, policy string, over bool) {
	v := c.verdict(policy)
	switch {
	case v.Kind == update.Nothing:
		p.Action = Unchanged
		return
	case over:
		v.Kind, v.Containers, p.Reason = update.Replace, nil, "it has ended, and runs again"
	case v.Kind >= update.Restart:
		p.Reason = v.Because(c.next.Pod)
	}
	p.Action = planned[v.Kind]
	if v.Kind == update.Replace { // containers start with the new contents
		v.Fields = slices.Clone(v.Fields)
		for k := range v.Fields {
			v.Fields[k].Note = ""
		}
	}
	p.Difference = &v
}

// waits returns what an action would wait for, in the words that ps will show.
func (n *Node) waits(r *rollout.Record, action Action) string {
	d := rollout.Decide(r, n.World)
	texts := r.Foreseen(&d)
	if r.Offered != nil && action.starts() && !n.NoObjects {
		missing := n.after.Missing(r.Offered)
		if missing != "" && !slices.Contains(texts, missing) {
			texts = append(texts, missing)
		}
	}
	return strings.Join(texts, "; ")
}

// onTrial sets what rolls a version back to the running one, or that it was rolled back: then
// version runs in its place.
func (out *Pod) onTrial(t *rollout.Trial, p, version *manifests.Pod, limits update.Limits) {
	switch {
	case t.IsBack(version):
		out.RolledBack = t.Line().Text
	case t.Tries(p) && limits.Within > 0 && (out.Action == Restarted || out.Action == Replaced):
		out.Trial = "the version that runs comes back, if it works, unless this one is ready within " + limits.Within.String() + " and stays so for " + limits.Stable.String()
	}
}

// others returns the expected change of a pod that is not in the request; nothing, if there is
// none. whole: no manifest gives the pod any more.
func (n *Node) others(key manifests.Key, whole bool) Pod {
	r := n.Record(key)
	p := r.Offered
	if p == nil {
		p, _ = r.Identity()
	}
	switch {
	case p == nil:
		return Pod{}
	case whole && p.Annotations["kubernetes.io/config.source"] != "http":
		r = rollout.Foresee(r, nil, n.World)
		return Pod{Name: key.String(), Action: Removed, Waits: n.waits(&r, Removed)}
	}
	out := Pod{Name: key.String(), Action: Unchanged}
	out.Objects = n.edits(&out, &r)
	if len(out.Objects) == 0 {
		return Pod{}
	}
	return out
}
