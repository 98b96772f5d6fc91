package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cri"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// Candidate is a pod of the manifests that somebody else runs: as a rule a kubelet that was
// stopped.
type Candidate struct {
	Pod       *manifests.Pod // as the manifest gives it, with the uid that it runs with
	Sandboxes []string       // the ids of those without the mark of the root dir
	Ready     bool           // one of them is ready, and has no mark itself
	Running   int            // how many containers run
	Made      []string       // the containers that somebody else made last, by name
	Revision  int            // the highest that a container has of the agent
	Started   time.Time      // when its first sandbox was made
	Differs   []string       // why it cannot be taken over; none: it can
}

// Survey is what the runtime has of the pods of the manifests.
type Survey struct {
	Candidates []Candidate     // sorted by name
	Own        []manifests.Key // that are this root dir's already
	New        []manifests.Key // of which nothing runs: the agent starts them
	Left       []string        // pods of manifests that are not given here, in words
}

// CanAdopt reports whether every pod that somebody else runs can be taken over. If one cannot, none
// is: the agent would make it again beside what is there.
func (s *Survey) CanAdopt() bool {
	return !slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return len(c.Differs) > 0 })
}

// Adopter takes over the pods that a kubelet left running.
type Adopter struct {
	Node        Node
	Hierarchies string // where the kernel shows cgroups
	Pods        []*manifests.Pod
	Marks       *checkpoint.Marks
	CRI         *cri.Client

	sandboxes  []*rt.PodSandbox
	containers []*rt.Container
}

// Survey looks at what the runtime has. It changes nothing.
func (a *Adopter) Survey(ctx context.Context) (s Survey, err error) {
	if a.sandboxes, err = a.CRI.Sandboxes(ctx, nil); err != nil {
		return s, err
	}
	if a.containers, err = a.CRI.Containers(ctx, nil); err != nil {
		return s, err
	}
	seen := map[manifests.Key]bool{}
	for _, p := range a.Pods {
		seen[p.Key()] = true
		c, isOther, isOwn := a.candidate(p)
		switch {
		case isOther:
			s.Candidates = append(s.Candidates, c)
		case isOwn:
			s.Own = append(s.Own, p.Key())
		default:
			s.New = append(s.New, p.Key())
		}
	}
	s.Left = a.left(seen)
	return s, nil
}

// candidate returns what somebody else runs of a pod; isOther is false if that is nothing, and then
// isOwn reports whether the root dir's agent runs it.
func (a *Adopter) candidate(p *manifests.Pod) (c Candidate, isOther, isOwn bool) {
	all := a.sandboxesOf(p.Key().Namespace, p.Name)
	if len(all) == 0 {
		if other := a.otherName(p); other != nil {
			return Candidate{Pod: p, Differs: []string{other.Error()}}, true, false
		}
		return c, false, false
	}
	uid := all[0].Labels[podspec.LabelPodUID]
	c = Candidate{Pod: withUID(p, uid), Started: time.Unix(0, all[0].CreatedAt)}
	for _, s := range all {
		if s.Labels[podspec.LabelPodUID] != uid {
			if s.State == rt.PodSandboxState_SANDBOX_READY {
				c.Differs = append(c.Differs, fmt.Sprintf("two pods of this name run, with the uids %s and %s: start the kubelet until it has ended one", uid, s.Labels[podspec.LabelPodUID]))
			}
			continue
		}
		c.Started = time.Unix(0, s.CreatedAt)
		if a.isForeign(s) {
			c.Sandboxes = append(c.Sandboxes, s.Id)
			c.Ready = c.Ready || s.State == rt.PodSandboxState_SANDBOX_READY && !a.Marks.Has(s.Id, s.Labels)
		}
	}
	if len(c.Sandboxes) == 0 {
		return c, false, true
	}
	c.Differs = append(c.Differs, a.differs(p, &c, all[0])...)
	return c, true, false
}

// sandboxesOf returns the sandboxes of a pod name: those that are ready first, then the newest.
func (a *Adopter) sandboxesOf(namespace, name string) (all []*rt.PodSandbox) {
	for _, s := range a.sandboxes {
		if s.Labels[podspec.LabelPodNamespace] == namespace && s.Labels[podspec.LabelPodName] == name {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y *rt.PodSandbox) int {
		return cmp.Or(cmp.Compare(x.State, y.State), cmp.Compare(y.CreatedAt, x.CreatedAt))
	})
	return all
}

// isForeign reports whether a sandbox, or a container of the pod in it, has no mark of the root dir. A
// kubelet that had the agent's sandbox for a while made its containers again without the mark.
func (a *Adopter) isForeign(s *rt.PodSandbox) bool {
	if !a.Marks.Has(s.Id, s.Labels) {
		return true
	}
	return slices.ContainsFunc(a.containers, func(c *rt.Container) bool {
		isOfPod := c.PodSandboxId == s.Id && c.Labels[podspec.LabelPodUID] == s.Labels[podspec.LabelPodUID] // others were made by hand
		return isOfPod && !a.Marks.Has(s.Id, c.Labels)
	})
}

// withUID returns the pod with the uid that it runs with.
func withUID(p *manifests.Pod, uid string) *manifests.Pod {
	running := *p
	running.Pod = p.DeepCopy()
	running.UID = types.UID(uid)
	running.Annotations[poduid.AnnotationHash] = uid
	return &running
}

// differs returns why a pod cannot be taken over, and counts what runs of it.
func (a *Adopter) differs(given *manifests.Pod, c *Candidate, s *rt.PodSandbox) (why []string) {
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	uid := string(c.Pod.UID)
	if !poduid.Valid(uid) {
		add("its uid %q %s: write one into metadata.uid, and let the kubelet start the pod again", uid, poduid.Rule)
		return why
	}
	if given.UID != c.Pod.UID && !poduid.IsComputed(given.UID) {
		add("it runs with the uid %s, and its manifest says %s: start the kubelet until it has applied that", uid, given.UID)
	}
	if other := s.Labels[podspec.LabelInstance]; other != "" && other != a.Marks.Instance {
		add("the monopod of another root dir runs it (%s=%s): name that root dir with --root", podspec.LabelInstance, other)
	}
	why = append(why, a.changed(c, uid)...)
	if dir := filepath.Join(a.Node.Root, "pods", uid); !isDir(dir) {
		add("its volumes are not in %s: name the root dir of the kubelet with --root", dir)
	}
	if dir := podspec.LogDir(a.Node.PodLogs, c.Pod.Key(), uid); !isDir(dir) {
		add("its logs are not in %s: name their folder with --pod-logs", dir)
	}
	if s.State == rt.PodSandboxState_SANDBOX_READY && a.Node.CgroupDriver != cgroups.None {
		if d := DriverOf(a.Hierarchies, a.Node.CgroupRoot, c.Pod.Pod); d != a.Node.CgroupDriver {
			add("%s", otherCgroup(d, a.Node))
		}
	}
	return why
}

// otherCgroup describes a pod whose cgroup another driver made, or none that is known here.
func otherCgroup(d cgroups.Driver, n Node) string {
	if d == cgroups.None {
		return fmt.Sprintf("its cgroup is not below %s: name the kubelet's with --cgroup-root", cmp.Or(n.CgroupRoot, "/"))
	}
	return fmt.Sprintf("the driver of its cgroup is %s, and %s here: choose it with --cgroup-driver", d, n.CgroupDriver)
}

// changed returns which containers were not made of the present manifest, and counts those that
// run.
func (a *Adopter) changed(c *Candidate, uid string) (why []string) {
	newest := map[string]*rt.Container{}
	for _, k := range a.containers {
		if k.Labels[podspec.LabelPodUID] != uid {
			continue
		}
		name := k.Metadata.GetName()
		if n, err := strconv.Atoi(k.Annotations[podspec.AnnRevision]); err == nil {
			c.Revision = max(c.Revision, n)
		}
		if k.State == rt.ContainerState_CONTAINER_RUNNING {
			c.Running++
		}
		if n := newest[name]; n == nil || n.Metadata.GetAttempt() < k.Metadata.GetAttempt() {
			newest[name] = k
		}
	}
	for _, spec := range podspec.AllContainers(c.Pod.Pod) {
		k := newest[spec.Name]
		if k != nil && !a.Marks.Has("", k.Labels) {
			c.Made = append(c.Made, spec.Name)
		}
		if k != nil && k.Annotations[podspec.AnnHash] != podspec.ContainerHash(spec) {
			why = append(why, fmt.Sprintf("container %s was made of another image than %s, which its manifest says: start the kubelet until it has applied that, or restore the manifest", spec.Name, spec.Image))
		}
		delete(newest, spec.Name)
	}
	for name, k := range newest {
		if k.State == rt.ContainerState_CONTAINER_RUNNING {
			why = append(why, fmt.Sprintf("container %s runs, and its manifest has none of that name: start the kubelet until it has applied that", name))
		}
	}
	return why
}

// otherName returns an error if the pod runs under the name of another node. A name that begins as
// the pod's may be another pod's: those of an API server do not end in the node's name.
func (a *Adopter) otherName(p *manifests.Pod) error {
	short := strings.TrimSuffix(p.Name, "-"+a.Node.Name)
	for _, s := range a.sandboxes {
		name, source := s.Labels[podspec.LabelPodName], s.Annotations[manifests.AnnotationSource]
		node, isOf := strings.CutPrefix(name, short+"-")
		if !isOf || s.Labels[podspec.LabelPodNamespace] != p.Namespace || s.State != rt.PodSandboxState_SANDBOX_READY ||
			source == "" || source == "api" || a.isGiven(p.Namespace, name) {
			continue
		}
		switch {
		case node == a.Node.Name:
			return fmt.Errorf("it runs as %s: set podNameSuffix to true", name)
		case !strings.HasSuffix(node, "-"+a.Node.Name) || !a.isNamed():
			return fmt.Errorf("it runs as %s: if that is its node name, say --node-name %s", name, node)
		}
	}
	return nil
}

// isNamed reports whether somebody else runs a pod of the manifests under the name that it has here,
// so the node has its name there, too.
func (a *Adopter) isNamed() bool {
	return slices.ContainsFunc(a.sandboxes, func(s *rt.PodSandbox) bool {
		return s.State == rt.PodSandboxState_SANDBOX_READY && !a.Marks.Has(s.Id, s.Labels) && a.isGiven(s.Labels[podspec.LabelPodNamespace], s.Labels[podspec.LabelPodName])
	})
}

func (a *Adopter) isGiven(namespace, name string) bool {
	return slices.ContainsFunc(a.Pods, func(p *manifests.Pod) bool { return p.Namespace == namespace && p.Name == name })
}

// left returns the static pods of others that no manifest here gives, in words.
func (a *Adopter) left(seen map[manifests.Key]bool) (words []string) {
	for _, s := range a.sandboxes {
		key := manifests.Key{Namespace: s.Labels[podspec.LabelPodNamespace], Name: s.Labels[podspec.LabelPodName]}
		if s.State == rt.PodSandboxState_SANDBOX_READY && !seen[key] && s.Annotations[manifests.AnnotationSource] != "" && !a.Marks.Has(s.Id, s.Labels) {
			words = append(words, key.String())
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// Adopt records the candidates in the root dir, whose lock the caller holds: their versions first,
// then that their sandboxes are the agent's, besides those that were adopted before. It touches
// neither the pods nor their files. The pods are of this boot. A damaged checkpoint is put aside, as the
// agent would do.
//
// An agent that starts before all is recorded must wait for the rest. It does if a pod that it knows
// is ready in a sandbox without the mark, so such pods come first.
func (s *Survey) Adopt(root *checkpoint.Root, boot checkpoint.Boot, log *slog.Logger) error {
	err := root.ReadAdopted()
	if damaged := (*disk.Damaged)(nil); err != nil && !errors.As(err, &damaged) { // a damaged list is written again
		return err
	}
	all, err := root.Checkpoints(log)
	if err != nil {
		return err
	}
	accepted := checkpoint.Accepted(all)
	var ids []string
	for _, c := range s.readyFirst() {
		ids = append(ids, c.Sandboxes...)
		if err := root.Save(c.checkpoint(accepted[c.Pod.Key()]).InBoot(boot)); err != nil {
			return err
		}
	}
	return root.Adopt(ids)
}

// readyFirst returns the candidates, those that are ready before the others.
func (s *Survey) readyFirst() []Candidate {
	var ready, others []Candidate
	for _, c := range s.Candidates {
		if c.Ready {
			ready = append(ready, c)
		} else {
			others = append(others, c)
		}
	}
	return append(ready, others...)
}

// checkpoint returns what is accepted of a candidate, where former is what was accepted of its name
// before a kubelet had the pod; nil: nothing was.
func (c *Candidate) checkpoint(former *checkpoint.Checkpoint) *checkpoint.Checkpoint {
	if former == nil || former.Uid() != string(c.Pod.UID) || former.Digest != c.Pod.Digest || former.Ended() != "" && c.Running > 0 {
		d := checkpoint.NewCheckpoint(c.Pod, metav1.NewTime(c.Started))
		d.Revision = c.Revision
		if former != nil { // the containers of then stay below the next revision
			d.Revision = max(d.Revision, former.Revision)
		}
		isOther := former != nil && former.Uid() != d.Uid()
		if isOther && !d.Accepted.After(former.Accepted.Time) { // the newest counts, whatever the clock was
			d.Accepted = metav1.NewTime(former.Accepted.Add(time.Second)) // the file has whole seconds
		}
		return d
	}
	d := *former
	d.Changed = maps.Clone(former.Changed)
	for _, name := range c.Made { // as the present version is
		delete(d.Changed, name)
	}
	return &d
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
