// Package diff says what manifests would change of the pods that run.
package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/client"
	"monopod/agent/status"
	"monopod/agent/update"
	"monopod/manifests"
	"monopod/manifests/decode"
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
	Difference *update.Verdict `json:"difference,omitempty"` // of a pod that runs and would change
	Waits      string          `json:"waits,omitempty"`      // for what of the owner's: holds, the update window, the lock of its workload
	Trial      string          `json:"trial,omitempty"`      // what makes it give way to the version that runs
	Objects    []string        `json:"objects,omitempty"`    // what other contents of ConfigMaps and Secrets mean to it
}

// Action is what the agent would do about a pod.
type Action string

const (
	New       Action = "new"
	Removed   Action = "removed"
	Unchanged Action = "unchanged"
)

// planned are the actions by what update.Plan says.
var planned = map[update.Kind]Action{
	update.Nothing: Unchanged, update.Live: "updated", update.Resize: "resized", update.Restart: "restarted", update.Replace: "replaced",
}

// Of compares desired pods with those that an agent has. from are their files, by
// namespace/name. whole says that they are all that the agent's folder would give; policy
// is the agent's of updates, and gate what keeps it from changing any pod now.
func Of(k *client.Known, desired []*manifests.Pod, from map[string]string, whole bool, policy string, gate Gate) Report {
	has := staying(k)
	r := Report{Pods: []Pod{}}
	for _, p := range desired {
		name := p.Key().String()
		next := compare(has[name], p, from[name], policy)
		next.Waits = waits(has[name], next.Action, gate)
		r.Pods = append(r.Pods, next)
		delete(has, name)
	}
	for name, p := range has {
		if whole && p.Annotations["kubernetes.io/config.source"] != "http" {
			r.Pods = append(r.Pods, Pod{Name: name, Action: Removed, Waits: waits(p, Removed, gate)})
		}
	}
	slices.SortFunc(r.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range r.Pods {
		if p.Action != Unchanged {
			r.Changes++
		}
	}
	return r
}

// AddTrials adds which of the changed pods give way to the versions that run unless they work, by
// the settings updateHealth and updateStable and the pods' annotations.
func (r *Report) AddTrials(k *client.Known, desired []*manifests.Pod, health, stable time.Duration) {
	has := staying(k)
	for _, next := range desired {
		name := next.Key().String()
		was, limits := has[name], update.LimitsOf(next.Pod, health, stable)
		if was == nil || limits.Within == 0 || ended(was) || !wasCreated(was) {
			continue
		}
		for i := range r.Pods {
			if p := &r.Pods[i]; p.Name == name && (p.Action == planned[update.Restart] || p.Action == planned[update.Replace]) {
				p.Trial = fmt.Sprintf("the version that runs comes back, if it works, unless this one is ready within %s and stays so for %s", limits.Within, limits.Stable)
			}
		}
	}
}

// staying are the pods that an agent has, by namespace/name, without those that leave: they
// would come back as others.
func staying(k *client.Known) map[string]*v1.Pod {
	has := map[string]*v1.Pod{}
	for i := range k.Pods {
		if p := &k.Pods[i]; p.DeletionTimestamp == nil {
			has[p.Namespace+"/"+p.Name] = p
		}
	}
	return has
}

// IsAccepted returns whether a version is one that an agent has, which it reads with what was
// no error when it was accepted.
func IsAccepted(k *client.Known) func(*manifests.Pod) bool {
	has := staying(k)
	return func(p *manifests.Pod) bool {
		was := has[p.Key().String()]
		return was != nil && manifests.Restored(asAccepted(was)) == p.Digest
	}
}

// asAccepted returns a copy of a reported pod without what is reported of it.
func asAccepted(reported *v1.Pod) *v1.Pod {
	p := reported.DeepCopy()
	delete(p.Annotations, status.AnnProblems)
	delete(p.Annotations, status.AnnHeld)
	return p
}

// waits says what keeps the agent from an action; "": nothing.
func waits(has *v1.Pod, a Action, gate Gate) string {
	switch {
	case a == Unchanged, a == Removed && ended(has):
		return ""
	case a == New, a != Removed && (ended(has) || !wasCreated(has)):
		return gate.Node // its own holds and windows are for what runs
	}
	all := []string{has.Annotations[status.AnnHeld], gate.Node, gate.Window}
	if a != Removed {
		all = append(all, lockOf(has))
	}
	return strings.Join(slices.DeleteFunc(all, func(text string) bool { return text == "" }), "; ")
}

// lockOf says which file of a pod that runs keeps its changes away; "": it has none. Whether the file
// is there is known to the agent alone, when a change comes.
func lockOf(has *v1.Pod) string {
	file := has.Annotations[decode.AnnotationUpdateLock]
	if _, _, is := decode.UpdateLock(has, file); !is {
		return ""
	}
	return "the lock of its workload, if " + file + " is there"
}

func ended(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// wasCreated reports whether any container of the pod was ever created.
func wasCreated(p *v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses),
		func(s v1.ContainerStatus) bool { return s.ContainerID != "" })
}

// compare says what would become of a pod; has is nil if the agent does not have it.
func compare(has *v1.Pod, desired *manifests.Pod, file, policy string) Pod {
	p := Pod{Name: desired.Key().String(), File: file, Action: New}
	if has == nil {
		return p
	}
	has = asAccepted(has)
	same := manifests.Restored(has) == desired.Digest
	v := update.Compare(has, desired.Pod)
	kind := update.Plan(v, same, update.PolicyOf(desired.Pod, policy))
	if ended(has) && kind > update.Nothing {
		kind = update.Replace // it runs again
	}
	p.Action = planned[kind]
	if kind == update.Nothing {
		return p
	}
	p.Reason = reasonOf(kind, v, ended(has), update.PolicyOf(desired.Pod, policy))
	for i := range v.Fields {
		if kind == update.Replace {
			v.Fields[i].Note = "" // containers start with what is new
		}
	}
	p.Difference = &v
	return p
}

// reasonOf says why a pod is replaced or restarted; "": it is neither.
func reasonOf(kind update.Kind, v update.Verdict, hasEnded bool, policy string) string {
	var paths []string
	for _, f := range v.Fields {
		if f.Kind == kind {
			paths = append(paths, f.Path)
		}
	}
	switch {
	case kind < update.Restart:
		return ""
	case hasEnded:
		return "it has ended, and runs again"
	case kind == update.Replace && v.Kind < kind && policy == update.PolicyReplace:
		return "each change replaces it: updatePolicy, or its annotation monopod.update, says so"
	}
	return strings.Join(paths, ", ")
}

// counts returns how many pods have each action, the most frequent ones first.
func (r Report) counts() []string {
	n := map[Action]int{}
	for _, p := range r.Pods {
		n[p.Action]++
	}
	all := slices.SortedFunc(maps.Keys(n), func(a, b Action) int { return cmp.Or(n[b]-n[a], cmp.Compare(a, b)) })
	var out []string
	for _, a := range all {
		out = append(out, fmt.Sprintf("%d %s", n[a], a))
	}
	return out
}
