// Package outlook says what manifests would change of the pods that there are.
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

// Report is what would become of pods.
type Report struct {
	Pods    []Pod `json:"pods"`    // sorted by name
	Changes int   `json:"changes"` // of the pods, how many would not stay as they are, or have objects with other contents
}

// Pod is what would become of one pod.
type Pod struct {
	Name       string          `json:"pod"`            // namespace/name
	File       string          `json:"file,omitempty"` // that gives it, as the person gave it
	Action     Action          `json:"action"`
	Reason     string          `json:"reason,omitempty"`     // why it is replaced, or restarted: the fields, or what else
	Difference *update.Verdict `json:"difference,omitempty"` // of a pod that is there and would change
	Waits      string          `json:"waits,omitempty"`      // for what that would wait, or the pod does: holds, the update window, the lock of its workload, its turn, room, what it lacks
	Trial      string          `json:"trial,omitempty"`      // what makes it give way to the version that runs
	RolledBack string          `json:"rolledBack,omitempty"` // that it gave way, or a person asked for it, when and why: the former version stays
	Objects    []string        `json:"objects,omitempty"`    // what other contents of ConfigMaps and Secrets mean to it
}

// Action is what would be done about a pod.
type Action string

// The actions.
const (
	New       Action = "new"
	Removed   Action = "removed"
	Unchanged Action = "unchanged"
	Updated   Action = "updated"   // in place, and nothing restarts
	Resized   Action = "resized"   // in place: containers get other cpu and memory
	Restarted Action = "restarted" // in place: containers restart
	Replaced  Action = "replaced"  // the pod is stopped, and made again
)

// planned are the actions by what the update of a pod takes.
var planned = map[update.Kind]Action{
	update.Nothing: Unchanged, update.Live: Updated, update.Resize: Resized, update.Restart: Restarted, update.Replace: Replaced,
}

// starts reports whether something of the pod starts.
func (a Action) starts() bool { return a == New || a == Restarted || a == Replaced }

// Node is what there is. Its funcs are pure questions, and nothing of it is changed.
type Node struct {
	World     *rollout.World
	Objects   *objects.Set                        // the ConfigMaps and Secrets
	NoObjects bool                                // these are not known
	Names     []manifests.Key                     // of all pods
	Record    func(manifests.Key) rollout.Record  // of a pod name
	Reported  func(manifests.Key) (*v1.Pod, bool) // how it is

	known map[manifests.Key]bool // the names that there would be
	after *objects.Set           // the objects that there would be
}

// Of says what would become of the pods if the manifests gave what is asked about.
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

// add adds a pod of which there is something to say.
func (r *Report) add(p Pod) {
	if p.Name == "" {
		return
	}
	r.Pods = append(r.Pods, p)
	if p.Action != Unchanged || len(p.Objects) > 0 {
		r.Changes++
	}
}

// given says what would become of a pod of which the manifests give this version.
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
		out.Action = Unchanged // it is to start, and waits
	}
	out.Waits = n.waits(&r, out.Action)
	out.onTrial(trial, p, version, n.World.Limits(p))
	out.Objects = n.edits(&out, &r)
	return out
}

// change is from one version of a pod to the next. One that came back has the images that it ran
// with; written are both as their manifests gave them.
type change struct {
	of, next *manifests.Pod
	written  [2]*manifests.Pod
}

// verdict says what the change takes, with the fields as the manifests have them where these show it.
func (c change) verdict(policy string) update.Verdict {
	v := update.Planned(c.of, c.next, policy)
	if written := update.Planned(c.written[0], c.written[1], policy); written.Kind == v.Kind {
		return written
	}
	return v
}

// becomes says how one version of a pod takes the place of another. over: that one has ended.
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
	if v.Kind == update.Replace { // containers start with what is new
		v.Fields = slices.Clone(v.Fields)
		for k := range v.Fields {
			v.Fields[k].Note = ""
		}
	}
	p.Difference = &v
}

// waits says for what an action would wait, in the words in which ps says it once it does.
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

// onTrial says what makes a version give way to the one that runs, or that it did: then version
// is to run in its place.
func (out *Pod) onTrial(t *rollout.Trial, p, version *manifests.Pod, limits update.Limits) {
	switch {
	case t.IsBack(version):
		out.RolledBack = t.Line().Text
	case t.Tries(p) && (out.Action == Restarted || out.Action == Replaced):
		out.Trial = "the version that runs comes back, if it works, unless this one is ready within " + limits.Within.String() + " and stays so for " + limits.Stable.String()
	}
}

// others says what would become of a pod that is not asked about; nothing, if nothing would.
// whole: then no manifest gives it any more.
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
