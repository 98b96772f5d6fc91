package agent

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/node"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

// The model's random walks: so many steps each, looked at after every few.
const (
	modelWalk   = 40
	modelTotal  = 4000 // make model STEPS= sets another
	modelChecks = 6
	modelGrace  = 40 * time.Second // longer than any pod's
	modelLimit  = 30 * time.Minute // in which all must be well once nothing interferes
	hearsWithin = 10 * time.Minute // more than the longest back-off of a crash
)

var modelPods = []string{"p0", "p1", "p2"}

// strangers is the namespace of pods that are not ours.
const strangers = "strangers"

// walk is one random walk through what may happen to an agent. Its goroutine
// is the only one that changes it.
type walk struct {
	*rig
	rand   *rand.Rand
	trace  []string
	up     bool            // an agent runs
	wishes map[string]wish // by name of the manifest, what the folder has
	former map[string]wish // what it had

	offered    map[manifests.Key]*manifests.Pod // what an agent was told last
	before     map[manifests.Key]account        // what was last found true
	lasts      map[manifests.Key]bool           // names that had an accepted version then, and are offered since
	rebooted   bool
	foreign    []critest.Sandbox
	noSuffix   bool              // the agent adds no node name to names
	hung       []*critest.Fault  // that can be released
	left       []critest.Sandbox // of agents whose root dir was wiped
	leftLogs   []string          // folders, likewise
	orphans    sync.Map          // the beginnings of their ids, and of their containers'
	answers    *hearsay
	succession *succession
	disk       *testDisk                 // of the root dir
	logs       string                    // folder
	decoded    map[string]*manifests.Pod // of wishes

	object string // the value of the ConfigMap that pods may refer to; "": there is none
	values int    // that it has had

	ends     bool                             // all pods go, which nothing makes doubtful
	shut     bool                             // the update window
	unwanted map[manifests.Key]*manifests.Pod // versions of manifests that gave way by request

	notes map[manifests.Key]note // the last of each pod

	sick     sync.Map     // ids of containers
	badHooks atomic.Int32 // so many postStart hooks will fail
}

// Random changes of manifests, of what runs, of the runtime, of the agent and
// of time leave, each time things have calmed down, what the manifests say.
// MONOPOD_MODEL_SEED is the first seed, alone the only one, and without it follows from what
// is committed: other walks for each commit, the same for one. MONOPOD_MODEL_STEPS is how
// many steps all walks have together. make model SEED= STEPS= sets them.
func TestModel(t *testing.T) {
	if d, ok := mountDisk(t.TempDir()); ok {
		noErr(t, d.unmount())
	} else {
		t.Log("NOT TESTED: root dirs on a disk that is full or read-only, as no disk can be mounted; run this as root")
	}
	percent := debug.SetGCPercent(1000) // there is little memory in use, and much garbage
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	first, steps := modelSeeds(t)
	for k := range max(1, steps/modelWalk) {
		t.Run(fmt.Sprintf("seed %d", first+k), func(t *testing.T) {
			t.Parallel()
			walkOnce(t, uint64(first+k), min(steps, modelWalk))
		})
	}
}

// modelSeeds returns the first seed, and how many steps all walks have together.
func modelSeeds(t *testing.T) (first, steps int) {
	t.Helper()
	first, steps = seedOfCommit(), modelTotal/fewer
	if seed := os.Getenv("MONOPOD_MODEL_SEED"); seed != "" {
		first, steps = number(t, seed), modelWalk
	}
	if s := os.Getenv("MONOPOD_MODEL_STEPS"); s != "" {
		steps = number(t, s)
	}
	t.Logf("the walks are those of the seeds from %d on", first)
	return first, steps
}

// seedOfCommit is the first seed of what is committed; 0 where nobody says what that is.
func seedOfCommit() int {
	tree, err := exec.Command("git", "rev-parse", "HEAD^{tree}").Output()
	if err != nil || len(tree) < 6 {
		return 0
	}
	seed, err := strconv.ParseInt(string(tree[:6]), 16, 32)
	if err != nil {
		return 0
	}
	return int(seed)
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func walkOnce(t *testing.T, seed uint64, steps int) {
	dir := quickDir(t)
	disk, ok := mountDisk(dir)
	if ok {
		defer func() { noErr(t, disk.unmount()) }()
	} else {
		disk.root = filepath.Join(dir, "root")
	}
	synctest.Test(t, func(t *testing.T) {
		w := &walk{rig: &rig{T: t, Runtime: critest.New(t), dir: disk.root, kept: filepath.Join(dir, "kept"), whole: disk.whole, log: &lines{}}, disk: &disk, logs: filepath.Join(dir, "logs"), answers: &hearsay{calls: map[string]int{}},
			succession: &succession{offers: map[manifests.Key][]*manifests.Pod{}, asked: map[string]bool{}, gone: map[manifests.Key]time.Time{}, locked: map[types.UID]time.Time{}, stops: map[manifests.Key]time.Time{}, backs: map[manifests.Key]*wayBack{}}, notes: map[manifests.Key]note{}, unwanted: map[manifests.Key]*manifests.Pod{},
			wishes: map[string]wish{}, former: map[string]wish{}, offered: map[manifests.Key]*manifests.Pod{}, before: map[manifests.Key]account{}, decoded: map[string]*manifests.Pod{}}
		w.configure = w.set
		w.facts = func(f *node.Facts) { f.Allocatable = amounts("cpu", strconv.Itoa(modelCPUs), "pods", "110") }
		w.mangle = func(args, reply any) {
			if reply == nil {
				w.watchStops(args)
			}
			w.answers.mangle(args, reply)
		}
		w.CountOnly()
		w.AddImage("img:1", "img:2")
		w.OnExec(w.exec)
		for name, p := range modelPrograms {
			w.Program(name, p...)
		}
		defer func() {
			if w.stop(); t.Failed() {
				t.Logf("the agent's log:\n%s", w.log)
				t.Logf("make model SEED=%d STEPS=%d walks it again. Its steps:\n%s", seed, steps, strings.Join(w.trace, "\n"))
			}
		}()
		if seed%2 == 0 { // in the others a shut window is one of which the hour is not known
			clockIsSet(w.rig)
		}
		w.rand = rand.New(rand.NewPCG(seed, 0))
		w.launch()
		w.seedStrangers()
		w.wander(seed, steps)
	})
}

// wander takes n steps, then lets all pods go. Each step has chances of its own, so
// that the steps of a seed stay what they are when a race ends in another way.
func (w *walk) wander(seed uint64, n int) {
	total := 0
	for _, s := range modelSteps {
		total += s.weight
	}
	for k := 0; k < n; {
		w.rand = rand.New(rand.NewPCG(seed, uint64(k+1)))
		at := w.rand.IntN(total)
		for _, s := range modelSteps {
			if at -= s.weight; at >= 0 {
				continue
			}
			if did := s.do(w); did != "" {
				w.note("%d %s", k, did)
			}
			break
		}
		k++
		if w.rand.IntN(3) > 0 {
			synctest.Wait()
		}
		w.reap()
		w.frugalSoFar()
		if w.rand.IntN(modelChecks) == 0 {
			w.calm()
		}
	}
	w.calm()
	clear(w.wishes)
	w.ends = true
	w.note("all go")
	w.calm()
	w.removeLeft()
	w.nothingLeft()
}

// halt ends the agent as SIGTERM does.
func (w *walk) halt() {
	w.stop()
	w.stop = func() {}
	w.life.once.Do(func() {})
	if w.up = false; w.life.over.Load() {
		w.bury()
	}
}

func (w *walk) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.trace = append(w.trace, time.Now().Format("15:04:05.000 ")+line)
	fmt.Fprintf(w.log, "---- %s\n", line)
	if os.Getenv("MONOPOD_MODEL_TRACE") != "" { // of a walk that does not end
		fmt.Fprintln(os.Stderr, w.trace[len(w.trace)-1])
	}
}

// launch starts an agent and tells it what the manifests say.
func (w *walk) launch() {
	w.isAccepted()
	w.start()
	w.up = true
	w.deliver()
}

// down kills the agent if it runs.
func (w *walk) down() {
	w.reap()
	if w.up {
		w.kill()
		w.up = false
	}
}

// reap buries an agent that was killed by a fault.
func (w *walk) reap() {
	if w.up && w.life.over.Load() {
		w.note("the agent was killed")
		w.bury()
		w.up = false
	}
}

// deliver offers what the manifests say; the latest wins.
func (w *walk) deliver() {
	w.reap()
	if !w.up {
		return
	}
	s := manifests.Snapshot{Complete: w.rand.IntN(10) > 0 || w.ends, Objects: w.objects()}
	now := map[manifests.Key]*manifests.Pod{}
	for _, p := range w.pods() {
		now[p.Key()] = p
		s.Pods = append(s.Pods, p)
	}
	w.succession.offer(now)
	select {
	case <-w.offers:
	default:
	}
	w.offers <- s
	for key := range w.before {
		if now[key] == nil || w.offered[key] == nil || !manifests.Same(now[key], w.offered[key]) {
			delete(w.before, key) // another instance may follow
		}
	}
	w.offered = now
	maps.DeleteFunc(w.unwanted, func(key manifests.Key, _ *manifests.Pod) bool { return now[key] == nil || !w.isUnwanted(now[key]) })
	maps.DeleteFunc(w.lasts, func(key manifests.Key, _ bool) bool { return now[key] == nil })
}

// calm ends all trouble and waits until all is as the manifests say.
func (w *walk) calm() {
	w.Helper()
	w.reap()
	w.mend()
	w.bringAll()
	synctest.Wait()
	if w.object == "" {
		w.changeObject()
	}
	w.deliver()
	synctest.Wait()
	w.stayUp()
	w.setWindow(false)
	w.releaseLocks()
	w.letAll()
	synctest.Wait()
	w.deliver()
	synctest.Wait()
	if w.disk.lately { // a stop that an agent could not write down may be under way
		w.after(modelGrace)
		w.disk.lately = false
	}
	began, wait := time.Now(), time.Millisecond
	for {
		w.reap()
		if !w.up { // by a fault that had struck already
			w.launch()
			synctest.Wait()
		}
		wrong := w.wrong()
		if len(wrong) == 0 {
			break
		}
		if time.Since(began) > modelLimit {
			w.note("not well")
			w.Fatalf("after %s:\n%s\n%sthe runtime has\n%s", modelLimit, strings.Join(wrong, "\n"), w.decided(), w.Runtime)
		}
		w.after(wait)
		wait = min(2*wait, 10*time.Second)
	}
	w.note("all is well after %s", time.Since(began))
	w.keepAccepted()
	w.account()
	w.steady()
	w.objectsLeaveAlone()
	w.hears()
	w.endures()
}

// mend ends all trouble.
func (w *walk) mend() {
	w.ClearFaults()
	w.hung = nil
	noErr(w.T, w.disk.spoil(diskWell))
	w.answers.setNetwork("")
	networkUp(w.rig)
	w.Resume()
	for _, method := range []string{"RunPodSandbox", "CreateContainer", "StartContainer", "RemoveContainer", "RemovePodSandbox"} {
		w.Takes(method, 0)
	}
	w.badHooks.Store(0)
	w.sick.Clear()
	w.OnPull("img:3", 0, nil)
	w.OnPull("img:4", 0, nil)
}

// hears ends a container now that all is well, of which each worker must hear.
func (w *walk) hears() {
	w.Helper()
	running := w.ourRunning()
	if len(running) == 0 || w.rand.IntN(2) == 0 {
		return
	}
	c := pick(w.rand, running...)
	w.note("%s/%s ends, with all well", c.Pod, c.Name)
	w.Exit(c.ID, 1)
	began := time.Now()
	for wrong := w.wrong(); len(wrong) > 0; wrong = w.wrong() {
		if time.Since(began) > hearsWithin {
			w.Fatalf("%s after the end of %s/%s:\n%s\nthe runtime has\n%s", hearsWithin, c.Pod, c.Name, strings.Join(wrong, "\n"), w.Runtime)
		}
		w.after(time.Second)
	}
	w.account()
}

// restless reports whether a pod has something that ends by itself, in the version that is
// wanted or in the one that is there.
func (w *walk) restless() bool {
	for _, p := range w.offered {
		if p.Spec.ActiveDeadlineSeconds != nil || slices.ContainsFunc(p.Spec.Containers, func(c v1.Container) bool { return exits(c.Name) }) {
			return true
		}
	}
	return slices.ContainsFunc(w.ourContainers(), func(c critest.Container) bool { return exits(c.Name) })
}

// steady checks that an agent that has nothing to do does nothing.
func (w *walk) steady() {
	w.Helper()
	if w.restless() {
		return
	}
	w.after(2 * time.Minute) // what has ended may still be being removed, or is tried again
	w.ForgetCalls()
	w.after(pleg.RelistWithEvents + time.Second)
	if n := w.Count("StopContainer") + w.Count("RemoveContainer") + w.Count("StopPodSandbox") + w.Count("RemovePodSandbox") + w.made(); n > 0 {
		w.Fatalf("%d calls although all was well", n)
	}
	if wrong := w.wrong(); len(wrong) > 0 {
		w.Fatalf("does not stay well: %s", strings.Join(wrong, "\n"))
	}
	if w.rand.IntN(3) == 0 {
		w.undisturbed()
	}
}

// seedStrangers makes sandboxes that the agent must leave alone: without a
// mark, with that of another agent, and of a pod that is called as one of ours.
func (w *walk) seedStrangers() {
	w.Helper()
	client := cri.New(w.Conn())
	for k, mark := range []string{"", "0123456789abcdef"} {
		labels := map[string]string{podspec.LabelPodName: "p0-n", podspec.LabelPodNamespace: "default", podspec.LabelPodUID: fmt.Sprint("stranger", k)}
		if mark != "" {
			labels[podspec.LabelInstance] = mark
		}
		config := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "p0-n", Namespace: strangers, Uid: fmt.Sprint("stranger", k), Attempt: uint32(k)}, Labels: labels}
		id, err := client.RunSandbox(context.Background(), config, "")
		if err != nil {
			w.Fatal(err)
		}
		b, _ := w.Sandbox(id)
		w.foreign = append(w.foreign, b)
		_, err = client.CreateContainer(context.Background(), id, &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: "c"}, Image: &rt.ImageSpec{Image: "img:1"}, Labels: labels}, config)
		if err != nil {
			w.Fatal(err)
		}
	}
}
