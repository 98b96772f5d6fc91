package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
	"monopod/manifests"
)

// endureFor is how long trouble stands in which each pod is to go on, in some version.
const endureFor = 10 * time.Minute

// standing is trouble that stands while manifests change. Each pod goes on through these edits;
// nil: through all that keep it from nothing. What the runtime does not make shows only once the
// former version has given way, as two versions never overlap: then only what an edit leaves
// alone goes on.
type standing struct {
	name  string
	begin func(*walk)
	edit  func(wish, *rand.Rand) (wish, string)
}

var modelStanding = []standing{
	{"no image can be pulled", func(w *walk) { w.Fault(critest.On("PullImage").Fail(codes.Unknown, "no route to host")) }, nil},
	{"pulls hang", func(w *walk) { w.Fault(critest.On("PullImage").Hang()) }, nil},
	{"the runtime does not say which images it has", func(w *walk) { w.Fault(critest.On("ImageStatus").Fail(codes.Unknown, "not now")) }, nil},
	{"the runtime lists nothing", func(w *walk) { w.Fault(critest.On("ListContainers").Fail(codes.Unknown, "not now")) }, nil},
	{"the runtime does not run", func(w *walk) { w.Stop() }, nil},
	{"the object is gone", func(w *walk) { w.object = "" }, nil},
	{"the disk is full", func(w *walk) { w.spoilWith(diskFull) }, nil},
	{"the disk is read-only", func(w *walk) { w.spoilWith(diskReadOnly) }, nil},
	{"pods get no network", func(w *walk) { networkDown(w.rig) }, nil},
	{"no sandbox can be made", func(w *walk) { w.Fault(critest.On("RunPodSandbox").Fail(codes.Unknown, "no such device")) }, wish.editOneContainer},
	{"no container can be made", func(w *walk) { w.Fault(critest.On("CreateContainer").Fail(codes.Unknown, "no such device")) }, wish.editLabel},
	{"no container can be started", func(w *walk) { w.Fault(critest.On("StartContainer").Fail(codes.Unknown, "no such device")) }, wish.editLabel},
}

func (w *walk) spoilWith(how string) {
	if w.disk.at != "" && w.rooted() {
		noErr(w.T, w.disk.spoil(how))
	}
}

// endures lets trouble stand while manifests change and the agent dies. Nobody asks for the end
// of a pod: some version of each goes on.
func (w *walk) endures() {
	w.Helper()
	names := w.lasting()
	if w.rand.IntN(3) > 0 || len(names) == 0 {
		return
	}
	s := pick(w.rand, modelStanding...)
	w.note("it stands for %s: %s", endureFor, s.name)
	s.begin(w)
	w.after(time.Minute) // until the runtime was asked how it is
	w.deliver()
	if w.rand.IntN(4) == 0 {
		w.down()
		w.launch()
	}
	edit := s.edit
	if edit == nil {
		edit = wish.editToAnother
	}
	for _, name := range names {
		var what string
		w.wishes[name], what = edit(w.wishes[name], w.rand)
		w.note("%s: %s", name, what)
		w.deliver()
	}
	w.after(endureFor)
	for _, name := range names {
		if !w.runs(name) {
			w.Fatalf("%s while %s, no version of %s runs\nthe runtime has\n%s", endureFor, s.name, name, w.Runtime)
		}
	}
	w.mend()
	synctest.Wait()
}

// lasting returns the manifests of pods that run on by themselves. One whose former version came
// back by request changes by more than an edit says.
func (w *walk) lasting() (names []string) {
	for _, name := range modelPods {
		wish, there := w.wishes[name]
		cameBack := w.unwanted[manifests.Key{Namespace: "default", Name: w.podName(name)}] != nil
		if !there || cameBack || wish.policy != "Always" || wish.deadline > 0 || wish.watched || slices.ContainsFunc(wish.regular, exits) {
			continue
		}
		p, ok := w.store.Pod("default/" + w.podName(name))
		if ok && p.Status.Phase == v1.PodRunning && w.runs(name) {
			names = append(names, name)
		}
	}
	return names
}

// runs reports whether a regular container of any version of a pod runs.
func (w *walk) runs(name string) bool {
	return slices.ContainsFunc(w.ourRunning(), func(c critest.Container) bool {
		return c.Pod == w.podName(name) && slices.Contains(w.wishes[name].regular, c.Name)
	})
}

// editToAnother changes what does not keep a pod from running on.
func (w wish) editToAnother(r *rand.Rand) (wish, string) {
	switch r.IntN(6) {
	case 0:
		w.image = fmt.Sprintf("img:%d", 1+r.IntN(4))
		return w, "image " + w.image
	case 1:
		w.command++
		return w, "command"
	case 2:
		w.label++
		return w, "label"
	case 3:
		w.host = !w.host
		return w, fmt.Sprint("host ", w.host)
	case 4:
		w.refers = pick(r, toNothing, toVariable, toFile, toRestart)
		return w, fmt.Sprintf("refers to %q", w.refers)
	}
	w.volume = !w.volume
	return w, fmt.Sprint("volume ", w.volume)
}

// editOneContainer changes what keeps the sandbox.
func (w wish) editOneContainer(r *rand.Rand) (wish, string) {
	if r.IntN(2) == 0 {
		return w.editLabel(r)
	}
	w.command++
	return w, "command"
}

// editLabel changes what restarts nothing.
func (w wish) editLabel(*rand.Rand) (wish, string) {
	w.label++
	return w, "label"
}
