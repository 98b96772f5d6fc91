package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

// other is another version of the pod web, which replaces the one that runs.
func other(image string, extra ...string) string {
	return manifest("web", image, append([]string{"hostname: other"}, extra...)...)
}

func TestAnUpdateWaitsForTheNetworkBesideTheVersionThatRuns(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.SetCondition(rt.NetworkReady, false, "NetworkPluginNotReady", "cni plugin not initialized")
		r.after(time.Minute)
		r.stopsNothing(func() {
			r.want(other("img:2"))
			r.after(10 * time.Minute)
		})
		r.updateWaits("the runtime has no network for pods yet: ")
		r.SetCondition(rt.NetworkReady, true, "", "")
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

func TestAnUpdateWaitsForRoomOnTheDiskBesideTheVersionThatRuns(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		junk := fill(r.T, disk)
		r.stopsNothing(func() {
			r.want(other("img:2"))
			r.after(10 * time.Minute)
		})
		r.updateWaits("no space left on device")
		noErr(t, os.Remove(junk))
		r.after(2 * time.Minute)
		r.replaced("img:2")
	})
}

// It gives way to whatever comes, and does not start in between only because that is not on disk yet.
func TestAVersionThatWasNeverMadeDoesNotStartBeforeItGivesWay(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		r.offline("img:3")
		r.want(strings.Replace(manifest("web", "img:1", "volumes: [{name: v, configMap: {name: m}}]"), `"img:1"}`, `"img:1", volumeMounts: [{name: v, mountPath: /v}]}`, 1))
		r.after(time.Minute)
		junk := fill(r.T, disk)
		r.want(other("img:3"))
		r.after(time.Minute)
		noErr(t, os.Remove(junk))
		r.want(other("img:3"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n")
		r.after(time.Minute)
		if n := r.Count("StartContainer"); n > 0 {
			r.Errorf("%d containers started", n)
		}
		r.online("img:3")
		r.after(10 * time.Minute)
		r.runsImage("img:3")
	})
}

// A version whose former one still stops starts once that has gone, though another edit came meanwhile
// and waits for its image: else nothing would run until that is there.
func TestAVersionThatTakesThePlaceOfAnotherStartsThoughTheNextOneWaits(t *testing.T) {
	for _, isKilled := range []bool{false, true} {
		live(t, func(r *rig) {
			r.Program("img:1", critest.Runs().IgnoresTerm())
			r.want(manifest("web", "img:1"))
			r.after(time.Minute)
			r.want(other("img:2"))
			r.after(5 * time.Second)
			r.offline("img:9")
			if isKilled {
				r.kill()
				r.start()
			}
			r.want(manifest("web", "img:9"))
			r.after(time.Minute)
			r.runsImage("img:2")
			if words := r.words("default/web-n"); !strings.Contains(words, "update waits: image img:9 cannot be pulled") {
				r.Errorf("it says %q", words)
			}
			r.online("img:9")
			r.after(10 * time.Minute)
			r.replaced("img:9")
		})
	}
}

func TestAnUpdateWaitsForAPathOfTheMachineBesideTheVersionThatRuns(t *testing.T) {
	live(t, func(r *rig) {
		path := filepath.Join(r.dir, "data")
		r.want(manifest("web", "img:1"))
		r.stopsNothing(func() {
			r.want(strings.Replace(other("img:2", "volumes: [{name: v, hostPath: {path: "+path+", type: Directory}}]"), "image:", "volumeMounts: [{name: v, mountPath: /v}], image:", 1))
			r.after(10 * time.Minute)
		})
		r.updateWaits(path + " is not a directory")
		noErr(t, os.Mkdir(path, 0o700))
		r.after(2 * time.Minute)
		r.replaced("img:2")
	})
}

// As an API server that is to write an audit log, into a folder that is not there.
func TestAnUpdateWaitsForTheFolderOfAFileThatItCreates(t *testing.T) {
	live(t, func(r *rig) {
		folder := filepath.Join(r.dir, "audit")
		r.want(manifest("web", "img:1"))
		r.stopsNothing(func() {
			r.want(strings.Replace(other("img:2", "volumes: [{name: v, hostPath: {path: "+folder+"/log, type: FileOrCreate}}]"), "image:", "volumeMounts: [{name: v, mountPath: /v}], image:", 1))
			r.after(10 * time.Minute)
		})
		r.updateWaits(folder + " does not exist")
		noErr(t, os.Mkdir(folder, 0o700))
		r.after(2 * time.Minute)
		r.replaced("img:2")
	})
}

func TestAnImageThatWentWhileTheUpdateWasHeldIsMissedBeforeAnythingStops(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:3")
		r.want(manifest("web", "img:1"))
		r.holds("web", "", "")
		r.want(manifest("web", "img:3"))
		r.after(time.Hour)
		noErr(t, cri.New(r.Conn()).RemoveImage(context.Background(), "img:3"))
		r.offline("img:3")
		r.stopsNothing(func() {
			r.releases("web")
			r.after(10 * time.Minute)
		})
		r.updateWaits(`image img:3`)
		r.online("img:3")
		r.after(10 * time.Minute)
		r.replaced("img:3")
	})
}

func TestAStoppedPodKeepsItsVolumesUntilTheVersionThatIsToStartCan(t *testing.T) {
	live(t, func(r *rig) {
		doc := func(image, more string) string {
			return strings.Replace(manifest("web", image, "volumes: [{name: v, emptyDir: {}}]", more), "image:", "volumeMounts: [{name: v, mountPath: /v}], image:", 1)
		}
		r.offline("img:9")
		r.want(doc("img:1", ""))
		c, _ := r.Container("c")
		file := filepath.Join(r.dir, "pods", c.UID, "volumes/kubernetes.io~empty-dir/v/file")
		noErr(t, os.WriteFile(file, nil, 0o600))
		r.stops("web")
		r.want(doc("img:9", "hostname: other"))
		r.starts("web")
		r.after(time.Minute)
		if words := r.words("default/web-n"); !strings.Contains(words, `image img:9`) {
			r.Errorf("it says %q", words)
		}
		r.want(doc("img:1", ""))
		r.after(time.Minute)
		r.runsImage("img:1")
		if _, err := os.Stat(file); err != nil {
			r.Error(err)
		}
	})
}

// While a version is prepared, nothing of it is there but its images; what the last look made
// goes with a version that does not come.
func TestNothingIsLeftOfAVersionThatDoesNotCome(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		c, _ := r.Container("c")
		former := filepath.Join(r.dir, "pods", c.UID)
		r.Fault(critest.On("StopContainer").Hang())
		r.Fault(critest.On("ListPodSandbox").Hang()) // the worker is in the middle of a look at its pod
		r.want(other("img:2"))
		r.after(time.Minute)
		r.want(manifest("web", "img:1"))
		r.ClearFaults()
		r.after(10 * time.Minute)
		r.runsImage("img:1")
		if dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*")); !slices.Equal(dirs, []string{former}) {
			r.Errorf("folders %v, want %s", dirs, former)
		}
		if left, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", checkpoint.NextFile)); len(left) > 0 {
			r.Errorf("left: %v", left)
		}
	})
}

// cuts are switches that are cut at each of their calls.
var cuts = []struct{ name, before, after string }{
	{"another uid", walked("web", "img:1"), walked("web", "img:8", "hostname: other")},
	{"the same uid", ownUID(walked("web", "img:1")), ownUID(walked("web", "img:8", "hostname: other"))},
	{"the former version stops first", walked("web", "img:1"), strings.Replace(walked("web", "img:8", "hostname: other"), "{name: web}", "{name: web, annotations: {monopod.update: stop-first}}", 1)},
}

func ownUID(doc string) string {
	return strings.Replace(doc, "{name: web}", "{name: web, uid: my-own-uid}", 1)
}

// undone are writes to the disk that are undone after the cut: as if the agent had died before
// them, and after the call that came before.
var undone = map[string]func(t *testing.T, dir string){
	"nothing": func(*testing.T, string) {},
	"the mark of the former version": func(t *testing.T, dir string) {
		for _, file := range glob(dir, "pod.json") {
			rewrite(t, file, func(pod map[string]any) { delete(pod["metadata"].(map[string]any), "deletionTimestamp") })
		}
	},
	"the acceptance of the new version": func(t *testing.T, dir string) {
		for _, file := range glob(dir, "pod.json") {
			if b, _ := os.ReadFile(file); strings.Contains(string(b), `"img:8"`) {
				noErr(t, os.Rename(file, filepath.Join(filepath.Dir(file), checkpoint.NextFile)))
			}
		}
	},
}

func glob(dir, name string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "pods", "*", name))
	return files
}

// rewrite changes the pod of a checkpoint, which is not sealed then.
func rewrite(t *testing.T, file string, change func(pod map[string]any)) {
	t.Helper()
	b, err := os.ReadFile(file)
	noErr(t, err)
	c := map[string]any{}
	noErr(t, json.Unmarshal(b, &c))
	change(c["pod"].(map[string]any))
	b, err = json.Marshal(c)
	noErr(t, err)
	noErr(t, os.WriteFile(file, b, 0o600))
}

// Wherever a switch is cut, exactly one version runs afterwards: the new one if its manifest can
// be read, else one of the two. Nothing is doubled, and nothing is left of the other.
func TestASwitchMayBeCutAnywhere(t *testing.T) {
	for _, c := range cuts {
		for undo := range undone {
			for _, readable := range []bool{true, false} {
				if undo != "nothing" && (readable || strings.Contains(c.after, "stop-first")) {
					continue // what is known beside the manifests matters where they cannot be read
				}
				name := c.name + ", without " + undo
				if !readable {
					name += ", and then the manifests cannot be read"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					calls := cutSwitch(t, c.before, c.after, undo, readable, 0)
					if len(calls) < 10 {
						t.Fatalf("only the calls %v", calls)
					}
					for k, method := range calls {
						if (changes(method) || method == "ImageStatus") && !t.Failed() { // others come to the same
							cutSwitch(t, c.before, c.after, undo, readable, k+1)
						}
					}
				})
			}
		}
	}
}

func cutSwitch(t *testing.T, before, after, undo string, readable bool, nth int) (calls []string) {
	dir := quickDir(t)
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(dir, "root"), log: &lines{}}
		r.AddImage("img:1", "img:8")
		r.Program("i", critest.ExitsAfter(time.Second, 0))
		r.Program("s", critest.Runs().OnTerm(2*time.Second, 0))
		r.start()
		defer func() { r.stop() }()
		r.want(before)
		r.after(3 * time.Second)
		r.ForgetCalls()
		if nth > 0 {
			r.order("kills the agent after", nth)
		}
		r.want(after)
		r.after(20 * time.Second)
		for _, c := range r.Calls() {
			calls = append(calls, c.Method)
		}
		if r.life.over.Load() {
			r.bury()
			undone[undo](t, r.dir)
			r.start()
			if readable {
				r.want(after)
			} else {
				r.offers <- manifests.Snapshot{Pods: r.known, Read: true}
			}
			r.after(5 * time.Minute)
		}
		running := r.Running()
		slices.Sort(running)
		images := map[string]bool{}
		for _, c := range r.Containers() {
			if c.Name == "c" && c.State == rt.ContainerState_CONTAINER_RUNNING {
				images[c.Config.Image.UserSpecifiedImage] = true
			}
		}
		if !slices.Equal(running, []string{"default/web-n/c", "default/web-n/s"}) || len(images) != 1 || readable && !images["img:8"] {
			t.Errorf("running %v of %v", running, images)
		}
		if twice := r.DoubleRunning(); len(twice) > 0 {
			t.Errorf("ran twice at a time: %v", twice)
		}
		if left := glob(r.dir, "*.json"); len(left) != 1 {
			t.Errorf("checkpoints %v", left)
		}
		r.want()
		r.after(time.Minute)
		r.leavesNothing()
		if t.Failed() {
			t.Logf("cut after call %d; the agent's log:\n%s", nth, r.log)
		}
	})
	return calls
}

// The network went a moment ago, and the agent was not told: the runtime is asked before what
// runs is stopped.
func TestTheNetworkIsAskedForBeforeWhatRunsStops(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		networkDown(r)
		r.stopsNothing(func() {
			r.want(other("img:2"))
			r.after(10 * time.Minute)
		})
		if words := r.words("default/web-n"); !strings.Contains(words, "update waits: the runtime has no network for pods yet: ") {
			r.Errorf("it says %q", words)
		}
		networkUp(r)
		r.after(time.Minute)
		r.replaced("img:2")
	})
}
