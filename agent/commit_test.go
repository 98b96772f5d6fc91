package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/status"
	"monopod/cri/critest"
)

// cannotBeMarked keeps the disk from taking, from when everything of the next version is there,
// that the former one goes. Only root can.
func (r *rig) cannotBeMarked() (release func()) {
	r.Helper()
	c, _ := r.Container("c")
	return pin(r.T, filepath.Join(r.dir, "pods", c.UID, "pod.json"))
}

// recordWaits checks that version 1 runs on, though another one was let start.
func (r *rig) recordWaits() {
	r.Helper()
	r.updateWaits("it cannot be recorded, so that the version before runs on: ")
	r.says(1, "it cannot be recorded")
	if waits, _ := r.waitEvents(); waits != 1 {
		r.Errorf("%d events that it waits", waits)
	}
}

// The last look may have found all well, and the disk takes no more a moment later.
func TestNothingStopsForAVersionThatIsNotRecorded(t *testing.T) {
	stopsFirst := strings.Replace(other("img:2"), "{name: web}", "{name: web, annotations: {monopod.update: stop-first}}", 1)
	for name, docs := range map[string][2]string{
		"another uid":                    {manifest("web", "img:1"), other("img:2")},
		"the same uid":                   {ownUID(manifest("web", "img:1")), ownUID(other("img:2"))},
		"the former version stops first": {manifest("web", "img:1"), stopsFirst},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.AddImage("img:2")
				r.want(docs[0])
				r.after(time.Minute)
				release := r.cannotBeMarked()
				r.stopsNothing(func() {
					r.want(docs[1])
					r.after(10 * time.Minute)
				})
				r.recordWaits()
				r.Exit("web-n/c", 1)
				r.after(time.Minute)
				r.recordWaits()
				release()
				r.after(6 * time.Minute)
				r.replaced("img:2")
				if _, on := r.waitEvents(); on != 1 {
					r.Errorf("%d events that it continues", on)
				}
			})
		})
	}
}

// What takes the place of the former version must be on the disk, too.
func TestNothingStopsForAVersionWhoseOwnCheckpointIsNotRecorded(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:2")
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		doc := strings.Replace(other("img:2"), "{name: web}", "{name: web, uid: my-own-uid, annotations: {monopod.update: stop-first}}", 1)
		inTheWay := filepath.Join(r.dir, "pods", "my-own-uid")
		noErr(t, os.WriteFile(inTheWay, nil, 0o600))
		r.stopsNothing(func() {
			r.want(doc)
			r.after(30 * time.Second)
		})
		r.recordWaits()
		noErr(t, os.Remove(inTheWay))
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

// An edit that is taken back ends the wait of one that is not recorded.
func TestAVersionThatIsNotRecordedMayBeTakenBack(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:2")
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		release := r.cannotBeMarked()
		r.stopsNothing(func() {
			r.want(other("img:2"))
			r.after(time.Minute)
			r.recordWaits()
			r.want(manifest("web", "img:1"))
			release()
			r.after(10 * time.Minute)
		})
		r.replaced("img:1")
	})
}

// What goes, and what its owner stops, goes whatever the disk takes.
func TestARemovalAndAStopNeedNoRecord(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"removed":                 func(r *rig) { r.want() },
		"removed while one waits": func(r *rig) { r.want(other("img:2")); r.after(time.Minute); r.want() },
		"stopped while one waits": func(r *rig) { r.want(other("img:2")); r.after(time.Minute); r.stops("web") },
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.AddImage("img:2")
				r.want(manifest("web", "img:1"))
				r.after(time.Minute)
				r.cannotBeMarked()
				end(r)
				r.after(time.Minute)
				for _, c := range r.Containers() {
					if c.State == rt.ContainerState_CONTAINER_RUNNING {
						t.Errorf("%s runs", c.Config.Image.UserSpecifiedImage)
					}
				}
			})
		})
	}
}

// Of a pod that its owner stopped, nothing is removed either before the version that starts in its
// place is recorded.
func TestTheVolumesOfAStoppedVersionStayUntilTheNextOneIsRecorded(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:2")
		doc := strings.Replace(manifest("web", "img:1", "volumes: [{name: v, emptyDir: {}}]"), "image:", "volumeMounts: [{name: v, mountPath: /v}], image:", 1)
		r.want(doc)
		c, _ := r.Container("c")
		file := filepath.Join(r.dir, "pods", c.UID, "volumes/kubernetes.io~empty-dir/v/file")
		noErr(t, os.WriteFile(file, nil, 0o600))
		release := r.cannotBeMarked()
		r.stops("web")
		r.want(other("img:2"))
		r.starts("web")
		r.after(10 * time.Minute)
		_, err := os.Stat(file)
		noErr(t, err)
		r.expect()
		if words := r.words("default/web-n"); !strings.Contains(words, "pod.json") {
			r.Errorf("it says %q", words)
		}
		release()
		r.after(6 * time.Minute)
		r.replaced("img:2")
	})
}

// While the record of a version waits for the disk, the report of the manifests says so and names
// what runs.
func TestTheReportOfTheManifestsNamesWhatRunsWhileARecordWaits(t *testing.T) {
	for name, docs := range map[string][2]string{
		"another uid":                 {manifest("web", "img:1"), other("img:2")},
		"the same uid, which is said": {ownUID(manifest("web", "img:1")), ownUID(other("img:2"))},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(docs[0])
				r.after(time.Minute)
				former, c := r.version(), r.Containers()[0]
				release := r.cannotBeMarked()
				r.want(docs[1])
				for range 3 {
					r.after(10 * time.Minute)
					why := "it cannot be recorded, so that the version before runs on: checkpoint of default/web-n: write ROOT/pods/" + c.UID + "/pod.json: device or resource busy"
					r.saysWhy("default/web: update waits: WHY", "/m/0.yaml: default/web-n waits: WHY", why)
					v, f := r.version(), r.store.Manifests().Files[0]
					if v.State != status.Waiting || v.Waiting != v.Hash || v.Running != former.Running || !f.Held {
						t.Errorf("of the file it says %+v, held %v", v, f.Held)
					}
				}
				release()
				r.after(6 * time.Minute)
				r.replaced("img:2")
				v, f := r.version(), r.store.Manifests().Files[0]
				if v.State != status.Accepted || v.Running != v.Hash || v.Reason != "" || f.Held {
					t.Errorf("once it runs it says %+v, held %v", v, f.Held)
				}
			})
		})
	}
}

// Once an edit is taken back, nothing waits.
func TestTheReportOfTheManifestsForgetsAVersionThatWasTakenBack(t *testing.T) {
	live(t, func(r *rig) {
		r.want(ownUID(manifest("web", "img:1")))
		r.after(time.Minute)
		r.cannotBeMarked()
		r.want(ownUID(other("img:2")))
		r.after(time.Minute)
		r.want(ownUID(manifest("web", "img:1")))
		r.after(time.Minute)
		if v := r.version(); v.State != status.Accepted || v.Reason != "" {
			t.Errorf("it says %+v", v)
		}
	})
}

// While a version stops, its manifest changes twice: the agent that comes next finds the last version
// accepted, as it needs that if the manifest cannot be read then.
func TestTheLastEditWhileAVersionStopsIsAccepted(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(strings.Replace(manifest("web", "img:1"), "{name: web}", "{name: web, uid: pinned}", 1))
		r.after(time.Minute)
		for _, doc := range []string{manifest("web", "img:1"), other("img:1")} {
			r.want(doc)
			r.after(time.Second)
		}
		r.expect("default/web-n/c")
		files, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", checkpoint.NextFile))
		if len(files) != 1 {
			t.Fatalf("accepted as the next version: %v", files)
		}
		if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), `"hostname":"other"`) {
			t.Errorf("the next version is %s (%v)", text, err)
		}
		if said := r.log.String(); strings.Contains(said, "gone for a while") {
			t.Errorf("its manifest was never gone:\n%s", said)
		}
	})
}
