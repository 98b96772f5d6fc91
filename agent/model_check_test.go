package agent

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/rollout"
	"monopod/cgroups"
	"monopod/cri/critest"
	"monopod/manifests"
)

// account is what was reported of a pod when all was well.
type account struct {
	phase    v1.PodPhase
	start    metav1.Time
	restarts map[string]int32
	codes    map[string]int32 // of containers that had ended for good
}

// wrong returns what is not as the manifests say; nothing: all is well. It looks while nothing
// runs: what is found on disk and in the runtime, one after the other, is of one moment then.
func (w *walk) wrong() []string {
	synctest.Wait()
	var out []string
	if foul := w.foul(); foul != "" {
		w.Fatal(foul)
	}
	if !w.up || w.life.over.Load() {
		return []string{"no agent runs"}
	}
	if !w.watch.Up() {
		return []string{"the runtime is not known to be up"}
	}
	if n := w.Open(critest.Changes); n > 0 {
		return []string{fmt.Sprintf("%d calls that change something have not ended", n)}
	}
	wanted := map[manifests.Key]bool{}
	for key, p := range w.offered {
		wanted[key] = true
		out = append(out, w.wrongWith(p)...)
	}
	for _, b := range w.ours() {
		if key := (manifests.Key{Namespace: b.Namespace, Name: b.Name}); !wanted[key] {
			out = append(out, fmt.Sprintf("%s has a sandbox and is not wanted", key))
		}
	}
	for _, p := range w.store.Pods() {
		if !wanted[manifests.KeyOf(p)] {
			out = append(out, fmt.Sprintf("%s is reported and not wanted", manifests.KeyOf(p)))
		}
	}
	return out
}

// foul returns what must not be at any time.
func (w *walk) foul() string {
	if d := w.twice(); d != "" {
		return "ran twice at a time: " + d
	}
	if d := w.early(); d != "" {
		return d
	}
	if d := w.touched(); d != "" {
		return d
	}
	if d := w.baseless(); d != "" {
		return d
	}
	if d := w.lostNotes(); d != "" {
		return d
	}
	for _, f := range w.foreign {
		b, there := w.Sandbox(f.ID)
		if !there || b.Ready == w.rebooted {
			return fmt.Sprintf("a stranger's sandbox was touched: %+v", b)
		}
		if c, there := w.Container(strangers + "/p0-n/c"); !there || c.State != rt.ContainerState_CONTAINER_CREATED {
			return fmt.Sprintf("a stranger's container was touched: %+v", c)
		}
	}
	return ""
}

// found is what the runtime has of one pod.
type found struct {
	sandboxes  []critest.Sandbox
	containers map[string]critest.Container // the newest of each name
	live       map[string]int               // how many of each run
	others     bool                         // of other uids too
}

func (w *walk) look(p *manifests.Pod) found {
	f := found{containers: map[string]critest.Container{}, live: map[string]int{}}
	for _, b := range w.ours() {
		switch {
		case b.Namespace != p.Namespace || b.Name != p.Name:
		case b.UID != string(p.UID):
			f.others = true
		default:
			f.sandboxes = append(f.sandboxes, b)
		}
	}
	for _, c := range w.ourContainers() {
		if c.Namespace != p.Namespace || c.Pod != p.Name || c.UID != string(p.UID) {
			continue
		}
		f.containers[c.Name] = c
		if c.State == rt.ContainerState_CONTAINER_RUNNING || c.State == rt.ContainerState_CONTAINER_UNKNOWN {
			f.live[c.Name]++
		}
	}
	return f
}

func (w *walk) wrongWith(p *manifests.Pod) (out []string) {
	bad := func(format string, args ...any) {
		out = append(out, p.Key().String()+": "+fmt.Sprintf(format, args...))
	}
	reported, ok := w.store.Pod(p.Key().String())
	if !ok {
		bad("no status")
		return out
	}
	if p = w.chosen(p, reported, bad); p == nil {
		return out
	}
	p = w.asKept(p, reported)
	st, f := reported.Status, w.look(p)
	if st.Reason == "OutOfcpu" {
		if held := w.heldByOthers(p.Key()); held+cpuOf(p) <= modelCPUs {
			bad("others have %d cpus, and it is refused: %s", held, st.Message)
		}
		return out
	}
	if w.startsLater(p) {
		if !saysWhy(p, &st, &st.ContainerStatuses[0]) {
			bad("others have its room, and it does not say so: %+v", st)
		}
		return out
	}
	c := w.written(p.UID)
	former := reported.UID != p.UID || f.others || c == nil || c.Digest != p.Digest
	if former && w.awaitsUID(p) {
		if st.Message == "" {
			bad("another pod has its uid, and it does not say so: %+v", st)
		}
		return out
	}
	if former && w.heldByOthers(p.Key())+cpuOf(p) > modelCPUs {
		return out // the version before runs until this one fits
	}
	if former {
		bad("a former instance is still there")
	}
	for _, n := range f.containers {
		if _, is := c.KillDecisions[n.ID]; is && f.live[n.Name] > 0 {
			bad("%s is condemned and runs", n.Name)
		}
	}
	if st.Phase == v1.PodSucceeded || st.Phase == v1.PodFailed {
		if !former && c.Ended() == "" {
			bad("is reported as %s, which is not its result", st.Phase)
		}
		w.wrongEnd(p, &st, f, bad)
		return out
	}
	if d := p.Spec.ActiveDeadlineSeconds; d != nil && time.Since(st.StartTime.Time) > time.Duration(*d)*time.Second {
		bad("its deadline has passed")
	}
	ready := 0
	for _, b := range f.sandboxes {
		if b.Ready {
			ready++
			if b.ID == c.ReplaceSandbox {
				bad("is to get another sandbox")
			}
			if !p.Spec.HostNetwork && b.IP != st.PodIP {
				bad("has address %s and reports %s", b.IP, st.PodIP)
			}
		}
	}
	if ready != 1 {
		bad("%d sandboxes are ready", ready)
	}
	for _, c := range p.Spec.Containers {
		w.wrongContainer(p, &c, statusOf(st.ContainerStatuses, c.Name), f, bad)
	}
	if allDone(p, f) {
		bad("all its work is done and it is not over")
	}
	for _, c := range p.Spec.InitContainers {
		if podspec.Restartable(&c) {
			w.wrongContainer(p, &c, statusOf(st.InitContainerStatuses, c.Name), f, bad)
		}
	}
	return out
}

// asKept returns a version with the uid of the pod that it was accepted in place of, if
// it was.
func (w *walk) asKept(p *manifests.Pod, reported *v1.Pod) *manifests.Pod {
	if c := w.written(reported.UID); reported.UID != p.UID && c.Digest == p.Digest && !isPinned(reported.UID) && !isPinned(p.UID) {
		return rollout.WithUID(p, reported.UID)
	}
	return p
}

// isPinned reports whether a wish says the uid.
func isPinned(uid types.UID) bool { return strings.HasPrefix(string(uid), "uid-of-") }

// written returns an instance's checkpoint, an empty one if it is to go.
func (w *walk) written(uid types.UID) *checkpoint.Checkpoint {
	if c := w.recordOf(string(uid)); c != nil && !c.IsRemoving() {
		return c
	}
	return &checkpoint.Checkpoint{}
}

// recordOf returns the checkpoint of a uid as it is on disk; nil: there is none.
func (w *walk) recordOf(uid string) *checkpoint.Checkpoint {
	c := &checkpoint.Checkpoint{}
	b, err := os.ReadFile(filepath.Join(w.dir, "pods", uid, "pod.json"))
	if err != nil || json.Unmarshal(b, c) != nil {
		return nil
	}
	return c
}

// wrongEnd checks a pod that has ended.
func (w *walk) wrongEnd(p *manifests.Pod, st *v1.PodStatus, f found, bad func(string, ...any)) {
	if !mayEnd(p.Pod, st, time.Now()) {
		bad("has ended %s under %s", st.Phase, p.Spec.RestartPolicy)
	}
	for name := range f.live {
		bad("has ended and %s runs", name)
	}
	for _, b := range f.sandboxes {
		if b.Ready {
			bad("has ended and its sandbox is ready")
		}
	}
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if c.State.Running != nil {
			bad("has ended and %s is reported to run", c.Name)
		}
	}
	for _, c := range st.ContainerStatuses {
		if t := c.State.Terminated; st.Phase == v1.PodSucceeded && (t == nil || t.ExitCode != 0) {
			bad("has succeeded and %s has %+v", c.Name, c.State)
		}
	}
}

// wrongContainer checks a regular container or sidecar of a pod that lives.
func (w *walk) wrongContainer(p *manifests.Pod, c *v1.Container, st *v1.ContainerStatus, f found, bad func(string, ...any)) {
	if st == nil {
		bad("%s has no status", c.Name)
		return
	}
	n, there := f.containers[c.Name]
	switch {
	case f.live[c.Name] > 1:
		bad("%s runs %d times", c.Name, f.live[c.Name])
	case f.live[c.Name] == 1:
		if n.State == rt.ContainerState_CONTAINER_UNKNOWN {
			bad("%s is in an unknown state", c.Name)
		}
		if got := n.Config; got.Image.UserSpecifiedImage != c.Image || !slices.Equal(got.Command, c.Command) {
			bad("%s runs %s %v, and not %s %v", c.Name, got.Image.UserSpecifiedImage, got.Command, c.Image, c.Command)
		}
		if asked := c.Resources.Requests.Cpu().MilliValue(); asked > 0 && n.Resources.GetCpuShares() != cgroups.Shares(asked) {
			bad("%s has %d shares of cpu", c.Name, n.Resources.GetCpuShares())
		}
		if st.State.Running == nil || st.ContainerID != "critest://"+n.ID || st.RestartCount != int32(n.Attempt) || st.Ready == unreadies(c) {
			bad("%s #%d runs and is reported %+v", c.Name, n.Attempt, st)
		}
		if why := w.wrongContent(p, n); why != "" {
			bad("%s %s", c.Name, why)
		}
		if img := n.Config.GetImage().GetUserSpecifiedImage(); img != c.Image {
			bad("%s runs %s", c.Name, img)
		}
	case !there || n.State != rt.ContainerState_CONTAINER_EXITED:
		bad("%s does not run", c.Name)
	case restartsAfter(p.Pod, c, n):
		if wt := st.State.Waiting; !exits(c.Name) || wt == nil || wt.Reason != "CrashLoopBackOff" {
			bad("%s exited with %d and is reported %+v", c.Name, n.ExitCode, st.State)
		}
	case st.State.Terminated == nil || st.State.Terminated.ExitCode != n.ExitCode:
		bad("%s exited with %d for good and is reported %+v", c.Name, n.ExitCode, st.State)
	}
}

func restartsAfter(p *v1.Pod, c *v1.Container, n critest.Container) bool {
	if podspec.Restartable(c) || p.Spec.RestartPolicy == v1.RestartPolicyAlways {
		return true
	}
	return p.Spec.RestartPolicy == v1.RestartPolicyOnFailure && (n.ExitCode != 0 || n.Reason == "OOMKilled")
}

func allDone(p *manifests.Pod, f found) bool {
	for _, c := range p.Spec.Containers {
		n, there := f.containers[c.Name]
		if !there || n.State != rt.ContainerState_CONTAINER_EXITED || restartsAfter(p.Pod, &c, n) {
			return false
		}
	}
	return true
}

func statusOf(all []v1.ContainerStatus, name string) *v1.ContainerStatus {
	if k := slices.IndexFunc(all, func(c v1.ContainerStatus) bool { return c.Name == name }); k >= 0 {
		return &all[k]
	}
	return nil
}

// account compares with what was true before, and remembers what is.
func (w *walk) account() {
	w.Helper()
	for key, p := range w.offered {
		reported, ok := w.store.Pod(key.String())
		if !ok {
			continue
		}
		p = w.asKept(p, reported)
		st := reported.Status
		c := w.written(p.UID)
		former := reported.UID != p.UID || c.Digest != p.Digest // which runs until this one fits
		if former || w.mayStillGo(c) || st.Reason == "OutOfcpu" || w.startsLater(p) {
			delete(w.before, key)
			continue
		}
		f := w.look(p)
		now := account{phase: st.Phase, start: *st.StartTime, restarts: map[string]int32{}, codes: map[string]int32{}}
		over := st.Phase == v1.PodSucceeded || st.Phase == v1.PodFailed
		for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
			if n, there := f.containers[c.Name]; !there || int32(n.Attempt) >= c.RestartCount {
				now.restarts[c.Name] = c.RestartCount
			} // else it counts one that is to come, which a kill before the next write forgets
			if t := c.State.Terminated; t != nil && over {
				now.codes[c.Name] = t.ExitCode
			}
		}
		if was, ok := w.before[key]; ok {
			w.compare(key, was, now)
		}
		w.before[key] = now
	}
}

func (w *walk) compare(key manifests.Key, was, now account) {
	w.Helper()
	if !was.start.Equal(&now.start) {
		w.Fatalf("%s started at %s, and now at %s", key, was.start, now.start)
	}
	for name, n := range was.restarts {
		if k, counted := now.restarts[name]; counted && k < n {
			w.Fatalf("%s/%s was restarted %d times, and now %d", key, name, n, k)
		}
	}
	over := was.phase == v1.PodSucceeded || was.phase == v1.PodFailed
	if over && (was.phase != now.phase || !maps.Equal(was.codes, now.codes)) {
		w.Fatalf("%s had ended %s %v, and now is %s %v", key, was.phase, was.codes, now.phase, now.codes)
	}
}

// filesUnder returns paths and all that is in them.
func filesUnder(paths []string) (all []string) {
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(path string, _ fs.DirEntry, _ error) error {
			all = append(all, path)
			return nil
		})
	}
	return all
}

// nothingLeft checks that pods leave no trace.
func (w *walk) nothingLeft() {
	w.Helper()
	w.after(2 * pleg.RelistWithEvents)
	if w.disk.spoilt { // what could not be removed is tried again each minute
		w.after(2 * time.Minute)
	}
	for _, folder := range []string{filepath.Join(w.dir, "pods"), filepath.Join(w.dir, "status", "pods"), filepath.Join(w.dir, "updates"), w.logs} {
		left, _ := filepath.Glob(filepath.Join(folder, "*"))
		left = slices.DeleteFunc(left, func(path string) bool { return slices.Contains(w.leftLogs, path) })
		if len(left) > 0 {
			w.Errorf("left on disk: %v", filesUnder(left))
		}
	}
	for _, c := range w.ourContainers() {
		w.Errorf("left in the runtime: %s %s", c.Pod, c.Name)
	}
}
