package agent

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri/critest"
)

// diskScenario is what a pod goes through while its agent dies before one of the disk calls of that.
type diskScenario struct {
	name     string
	first    []string // the manifests at first
	steps    []ask    // what its owner does then
	runs     string   // the image of container c in the end; "": nothing runs
	restarts uint32   // the attempt of container c in the end
	isSame   bool     // it is the container that ran at first
	keeps    bool     // what was in the pod's own volume is there in the end
	rests    bool     // nothing need run meanwhile: its owner asks for that, it fails by itself, or its folder is the former version's, too
	comes    bool     // the version before comes back: its record stays, and attempts are not counted
	isSwitch bool     // each of its calls is tried
}

// ask is a request of the owner, which is repeated to the next agent if the one that was asked died,
// and once the disk is well if that is why it was refused.
type ask func(w *diskWalk) error

func wants(docs ...string) ask {
	return func(w *diskWalk) error { w.docs = docs; w.want(docs...); return nil }
}

func asksStop(w *diskWalk) error  { return w.owner.Stop(w.Context(), podKey("web"), nil) }
func asksStart(w *diskWalk) error { return w.owner.Start(w.Context(), podKey("web"), nil) }

func asksHold(w *diskWalk) error {
	return w.owner.Hold(w.Context(), podKey("web"), url.Values{})
}
func asksRelease(w *diskWalk) error { return w.owner.Release(w.Context(), podKey("web"), nil) }

// stored is a pod with a ConfigMap, a volume of its own and a claim, which is watched if within
// says for how long.
func stored(within, image, configMap string, extra ...string) []string {
	doc := manifest("web", image, append([]string{"terminationGracePeriodSeconds: 5",
		"volumes: [{name: v, emptyDir: {}}, {name: d, persistentVolumeClaim: {claimName: d}}]"}, extra...)...)
	doc = strings.Replace(doc, "image:", "volumeMounts: [{name: v, mountPath: /v}, {name: d, mountPath: /d}], envFrom: [{configMapRef: {name: "+configMap+"}}], image:", 1)
	if within != "" {
		doc = healthy(within, doc)
	}
	doc += "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: d}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	return []string{doc, object("ConfigMap", configMap, "a: one")}
}

func withOwnUID(docs []string) []string {
	docs = slices.Clone(docs)
	docs[0] = strings.Replace(docs[0], "name: web}", "name: web, uid: my-own-uid}", 1)
	return docs
}

// elsewhereNow makes a version replace the pod.
const elsewhereNow = "hostname: other"

var diskScenarios = func() []diskScenario {
	v1st, v2nd := stored("", "img:1", "one"), stored("", "img:2", "two", elsewhereNow)
	bad := stored("10s", "img:bad", "two", elsewhereNow)
	badInPlace := stored("10s", "img:bad", "one")
	good := stored("10s", "img:2", "two", elsewhereNow)
	pinned1, pinned2 := withOwnUID(v1st), withOwnUID(v2nd)
	inPlace := stored("", "img:2", "one")
	labels := slices.Clone(v1st)
	labels[0] = strings.Replace(labels[0], "name: web}", "name: web, labels: {a: b}}", 1)
	return []diskScenario{
		{name: "start", steps: []ask{wants(v1st...)}, runs: "img:1"},
		{name: "switch", first: v1st, steps: []ask{wants(v2nd...)}, runs: "img:2", isSwitch: true},
		{name: "switch under the same uid", first: pinned1, steps: []ask{wants(pinned2...)}, rests: true, runs: "img:2", isSwitch: true},
		{name: "change of a label", first: v1st, steps: []ask{wants(labels...)}, runs: "img:1", isSame: true, keeps: true},
		{name: "change in place", first: v1st, steps: []ask{wants(inPlace...)}, runs: "img:2", restarts: 1, keeps: true},
		{name: "trial that is passed", first: v1st, steps: []ask{wants(good...)}, runs: "img:2"},
		{name: "trial that rolls back", first: v1st, steps: []ask{wants(bad...)}, rests: true, runs: "img:1", comes: true},
		{name: "trial in place that rolls back", first: v1st, steps: []ask{wants(badInPlace...)}, runs: "img:1", keeps: true, comes: true},
		{name: "stop and start", first: v1st, steps: []ask{asksStop, asksStart}, rests: true, runs: "img:1", restarts: 1, keeps: true},
		{name: "stop, edit and start", first: v1st, steps: []ask{asksStop, wants(v2nd...), asksStart}, rests: true, runs: "img:2"},
		{name: "switch that was held", first: v1st, steps: []ask{asksHold, wants(v2nd...), asksRelease}, runs: "img:2"},
		{name: "removal", first: v1st, steps: []ask{wants()}},
		{name: "removal while the next version waits", first: v1st, steps: []ask{wants(stored("", "img:none", "two", elsewhereNow)...), wants()}},
		{name: "third version while the second waits", first: v1st, steps: []ask{wants(stored("", "img:none", "two", elsewhereNow)...), wants(v2nd...)}, runs: "img:2"},
	}
}()

// diskWalk is one way through a scenario.
type diskWalk struct {
	*rig
	of     *diskScenario
	docs   []string          // the manifests as they are now
	marks  []string          // files in volumes
	first  string            // the id of the container that ran at first
	images map[string]string // the names of images by id
	watch  diskWatch
	died   bool
}

// cutsEach is how many disk calls are between two at which an agent dies, where not each one is
// tried. Which ones follows from what is committed: others for each commit.
const cutsEach = 3 * fewer

// Before whichever call that changes the root dir an agent dies, the next one goes on from there.
// What is between two such calls are calls of the runtime, at which it dies in the other walks. With
// MONOPOD_CUTS=all each call of each scenario is tried.
func TestEveryDiskCallMayBeTheLast(t *testing.T) {
	t.Parallel()
	watch, ok := runWatched(t)
	if !ok {
		return
	}
	all := 0
	for _, s := range diskScenarios {
		t.Run(s.name, func(t *testing.T) {
			calls, _ := s.walk(t, watch, 0)
			if len(calls) < 4 {
				t.Fatalf("only the calls %v", calls)
			}
			nth, by := 1, 1
			if os.Getenv("MONOPOD_CUTS") != "all" && !s.isSwitch {
				nth, by = 1+seedOfCommit()%cutsEach, cutsEach
			}
			cuts := 0
			for died := true; died && !t.Failed(); nth += by {
				_, died = s.walk(t, watch, nth)
				if died {
					cuts++
				}
			}
			t.Logf("%d disk calls, %d cuts: %s", len(calls), cuts, tally(calls))
			all += cuts
		})
	}
	t.Logf("%d cuts", all)
}

// tally counts calls by what they do.
func tally(calls []string) string {
	count := map[string]int{}
	for _, c := range calls {
		count[c]++
	}
	var lines []string
	for c, n := range count {
		lines = append(lines, fmt.Sprintf("%d %s", n, c))
	}
	slices.Sort(lines)
	return "\n\t" + strings.Join(lines, "\n\t")
}

// walk goes through the scenario with an agent that dies before the nth disk call; 0: it does not.
// It returns all these calls.
func (s *diskScenario) walk(t *testing.T, watch diskWatch, nth int) (calls []string, died bool) {
	dir := quickDir(t)
	synctest.Test(t, func(t *testing.T) {
		w := &diskWalk{rig: &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), kept: filepath.Join(dir, "kept"), log: &lines{}}, of: s, watch: watch, images: map[string]string{}}
		w.copied = func() bool { _, err := os.Lstat(w.kept); return err == nil }
		w.AddImage("img:1", "img:2", "img:bad")
		w.offline("img:none")
		w.Program("img:bad", critest.Exits(1))
		w.start()
		defer func() { w.stop() }()
		if s.first != nil {
			w.begin()
		}
		noErr(t, watch.begin(watchOrder{Dir: w.dir, Kept: w.kept, Nth: nth}))
		for _, do := range s.steps {
			w.take(do)
		}
		w.outlast()
		var err error
		calls, err = watch.end()
		noErr(t, err)
		w.check()
		died = w.died
		w.docs = nil
		w.want()
		w.after(3 * time.Minute)
		w.leavesNothing()
		w.tidy(0)
		if t.Failed() {
			at := "nothing"
			if nth > 0 && nth <= len(calls) {
				at = calls[nth-1]
			}
			t.Logf("%s, cut before call %d, %s; the agent's log:\n%s", s.name, nth, at, w.log)
		}
	})
	return calls, died
}

// begin lets the pod run, with something in its volumes.
func (w *diskWalk) begin() {
	_ = wants(w.of.first...)(w)
	w.after(time.Minute)
	c, ok := w.Container("web-n/c")
	if !ok {
		w.Fatal("nothing runs at first")
	}
	w.first, w.images[c.Config.Image.Image] = c.ID, c.Config.Image.UserSpecifiedImage
	w.marks = []string{filepath.Join(w.dir, "volumes", "default_d", "mark")}
	if w.of.keeps {
		w.marks = append(w.marks, filepath.Join(w.dir, "pods", c.UID, "volumes/kubernetes.io~empty-dir/v/mark"))
	}
	for _, mark := range w.marks {
		noErr(w.T, os.WriteFile(mark, []byte("mark"), 0o600))
	}
}

// take does what the owner does, and again if the agent dies meanwhile.
func (w *diskWalk) take(do ask) {
	_ = do(w)
	w.after(8 * time.Second)
	if w.succeed() {
		_ = do(w)
		w.after(8 * time.Second)
	}
}

// succeed starts another agent if the one that ran is dead.
func (w *diskWalk) succeed() bool {
	if !w.life.isOver() {
		return false
	}
	w.died = true
	w.bury()
	w.rig.start()
	w.want(w.docs...)
	w.after(time.Second)
	return true
}

// outlast lets time pass until all is right for a while.
func (w *diskWalk) outlast() {
	for right, waited := 0, 0; right < 10 && waited < 180; waited++ {
		w.after(time.Second)
		w.succeed()
		right++
		if !w.isRight() {
			right = 0
		}
	}
}

func (w *diskWalk) isRight() bool {
	var now []string
	for _, c := range w.Containers() {
		if w.images[c.Config.Image.Image] == "" { // a version that comes back names its image by the id
			w.images[c.Config.Image.Image] = c.Config.Image.UserSpecifiedImage
		}
		if c.State == rt.ContainerState_CONTAINER_RUNNING {
			now = append(now, w.images[c.Config.Image.Image])
		}
	}
	updates, _ := filepath.Glob(filepath.Join(w.dir, "updates", "*"))
	isFinal := len(updates) == 0 || w.of.comes
	return isFinal && (w.of.runs == "" && len(now) == 0 || len(now) == 1 && now[0] == w.of.runs)
}

func (w *diskWalk) check() {
	w.Helper()
	if !w.isRight() {
		w.Errorf("running %v, want %s; the runtime has\n%s", w.Running(), cmp.Or(w.of.runs, "nothing"), w.Runtime)
	}
	if twice := w.DoubleRunning(); len(twice) > 0 {
		w.Errorf("ran twice at a time: %v", twice)
	}
	for _, mark := range w.marks {
		if _, err := os.Lstat(mark); err != nil {
			w.Errorf("of a volume is lost: %v", err)
		}
	}
	if w.of.runs == "" {
		return
	}
	c, _ := w.Container("web-n/c")
	if w.of.isSame && c.ID != w.first {
		w.Errorf("%s was restarted", w.first)
	}
	if !w.of.comes && c.Attempt != w.of.restarts {
		w.Errorf("attempt %d, want %d", c.Attempt, w.of.restarts)
	}
	w.after(2 * time.Minute) // what is collected goes
	w.tidy(1)
}

// tidy checks that nothing is on disk but what so many pods need.
func (w *diskWalk) tidy(pods int) {
	w.Helper()
	look := func(pattern string) (left []string) {
		left, _ = filepath.Glob(filepath.Join(w.dir, pattern))
		return left
	}
	if all := look("pods/*"); len(all) != pods {
		w.Errorf("folders of pods: %v", all)
	}
	if all := look("objects/*.json"); len(all) < pods || len(all) > 2*pods {
		w.Errorf("objects: %v", all)
	}
	var left []string
	for _, pattern := range []string{"pods/*/next.json", "pods/.*", "objects/.*", "updates/.*", "claims/.*", "volumes/.*", ".tmp*", "pods/*/.*"} {
		left = append(left, look(pattern)...)
	}
	if pods == 0 || !w.of.comes {
		left = append(left, look("updates/*")...)
	}
	if len(left) > 0 {
		w.Errorf("left on disk: %v", left)
	}
}
