package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/agent/checkpoint"
	"monopod/cri/critest"
)

// generated is the manifest of a pod of an image, and of the ConfigMap of its own that it has
// as kustomize makes them: each version one of another name.
func generated(image, configMap string) []string {
	pod := refers("web", "envFrom: [{configMapRef: {name: "+configMap+"}}]")
	return []string{strings.Replace(pod, "'img:1'", "'"+image+"'", 1), object("ConfigMap", configMap, "a: one")}
}

// savedObjects are the objects on disk, of which those in brackets are retained.
func (r *rig) savedObjects() string {
	r.Helper()
	given, retained := (&checkpoint.Root{Dir: r.dir}).Objects(slog.New(slog.DiscardHandler))
	var all []string
	for _, o := range given {
		all = append(all, o.Key().Name)
	}
	for _, o := range retained {
		all = append(all, "("+o.Key().Name+")")
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (r *rig) hasSaved(want string) {
	r.Helper()
	if got := r.savedObjects(); got != want {
		r.Errorf("on disk is %q, want %q", got, want)
	}
}

func TestAVersionKeepsItsObjectsWhileItsSuccessorWaits(t *testing.T) {
	next := generated("img:9", "two")
	for _, row := range []struct {
		name string
		then func(*rig)
	}{
		{"over a crash", func(r *rig) { r.Exit("c", 1) }},
		{"over the death of its sandbox", func(r *rig) { r.KillSandbox("web-n") }},
		{"over a restart of the agent", func(r *rig) {
			r.kill()
			r.start()
			r.want(next...)
			r.Exit("c", 1)
		}},
		{"over a reboot", func(r *rig) {
			r.kill()
			r.reboot()
			r.start()
			r.want(next...)
		}},
		{"over two reboots, with manifests that come late", func(r *rig) {
			for range 2 {
				r.stop()
				r.reboot()
				r.start()
				r.after(time.Minute)
			}
			r.want(next...)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.offline("img:9")
				r.boot.ID = "one"
				r.want(generated("img:1", "one")...)
				r.want(next...)
				r.after(time.Minute)
				r.hasSaved("(one) two")
				row.then(r)
				r.after(10 * time.Minute)
				r.expect("default/web-n/c")
				if got := r.env("c"); got != "a=one" {
					t.Errorf("variables %q", got)
				}
				r.hasSaved("(one) two")
				r.online("img:9")
				r.after(10 * time.Minute)
				r.expect("default/web-n/c")
				r.hasSaved("two")
			})
		})
	}
}

func TestARollbackFindsTheObjectsOfTheFormerVersion(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.ExitsAfter(200*time.Millisecond, 1))
		first, second := generated("img:1", "one"), generated("img:2", "two")
		first[0], second[0] = healthy("30s", first[0]), healthy("30s", second[0])
		r.want(first...)
		former := r.imageID()
		r.want(second...)
		r.after(time.Second)
		r.hasSaved("(one) two")
		r.after(10 * time.Minute)
		r.runsID(former)
		r.hasSaved("(one) two")
		r.want(second[0]) // the ConfigMap of the version that waits goes, too
		r.hasSaved("(one)")
		r.Exit("c", 1)
		r.after(10 * time.Minute)
		r.runsID(former)
	})
}

func TestATrialThatEndsWellLetsTheObjectsOfTheFormerVersionGo(t *testing.T) {
	live(t, func(r *rig) {
		first, second := generated("img:1", "one"), generated("img:2", "two")
		first[0], second[0] = healthy("30s", first[0]), healthy("30s", second[0])
		r.want(first...)
		r.want(second...)
		r.after(time.Second)
		r.hasSaved("(one) two")
		r.after(10 * time.Minute)
		r.hasSaved("two")
	})
}

func TestAPodThatIsHeldKeepsItsObjectsWhenAllFilesAreRemoved(t *testing.T) {
	live(t, func(r *rig) {
		r.want(generated("img:1", "one")...)
		r.holds("web", "audit", "")
		r.want()
		r.after(time.Minute)
		r.Exit("c", 1)
		r.after(10 * time.Minute)
		r.expect("default/web-n/c")
		r.hasSaved("(one)")
		r.releases("web")
		r.after(time.Minute)
		r.expect()
		r.hasSaved("")
	})
}

func TestAPodThatIsStoppedKeepsItsObjects(t *testing.T) {
	live(t, func(r *rig) {
		docs := generated("img:1", "one")
		r.want(docs...)
		r.stops("web")
		r.want(docs[0])
		r.kill()
		r.start()
		r.want(docs[0])
		r.after(time.Minute)
		r.hasSaved("(one)")
		r.starts("web")
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.want()
		r.after(time.Minute)
		r.hasSaved("")
	})
}

func TestASecretGoesFromDiskWithTheLastPodThatNeedsIt(t *testing.T) {
	live(t, func(r *rig) {
		a := refers("a", "envFrom: [{secretRef: {name: s}}]")
		b := refers("b", "volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, projected: {sources: [{secret: {name: s, optional: true}}]}}]")
		r.want(a, b, object("Secret", "s", "k: hunter2"))
		r.want(a, b)
		r.after(time.Minute)
		r.hasSaved("(s)")
		r.want(b)
		r.after(time.Minute)
		r.hasSaved("(s)")
		r.want()
		r.after(time.Minute)
		r.hasSaved("")
		all, err := os.ReadDir(filepath.Join(r.dir, "objects"))
		if err != nil || len(all) > 0 {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestWhatNoVersionNeedsGoesWithItsManifest(t *testing.T) {
	live(t, func(r *rig) {
		docs := generated("img:1", "one")
		r.want(docs[0], docs[1], object("ConfigMap", "other", "a: b"))
		r.want(docs...)
		r.after(time.Second)
		r.hasSaved("one")
		for _, f := range r.store.Manifests().Files {
			if len(f.Problems) > 0 {
				t.Errorf("%s: %v", f.Path, f.Problems)
			}
		}
	})
}

func TestAFormerAgentsObjectsAreNotLostByTheOneThatRetains(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(generated("img:1", "one")...)
		next := generated("img:9", "two")
		r.want(next...)
		r.after(time.Minute)
		r.kill()
		r.asGiven() // an agent that knows of no retained ones
		r.start()
		r.want(append(generated("img:9", "two"), object("ConfigMap", "one", "a: one"))...) // not proven to be gone yet
		r.want(next...)
		r.Exit("c", 1)
		r.after(10 * time.Minute)
		r.expect("default/web-n/c")
		r.hasSaved("(one) two")
	})
}

// asGiven makes all objects on disk those that manifests gave.
func (r *rig) asGiven() {
	r.Helper()
	root := &checkpoint.Root{Dir: r.dir}
	given, retained := root.Objects(slog.New(slog.DiscardHandler))
	noErr(r.T, root.SaveObjects(slices.Concat(given, retained)))
}

// A disk that does not answer is said once, and what it was to take is there once it does.
func TestObjectsWaitForADiskThatDoesNotAnswer(t *testing.T) {
	live(t, func(r *rig) {
		const late = "does not answer; what is to be written waits for it"
		answers := make(chan struct{})
		r.sync.keeps.write = func() error {
			<-answers
			return r.root.RetainObjects()
		}
		r.offline("img:9")
		r.want(generated("img:1", "one")...)
		r.after(time.Second)
		r.says(0, late)
		r.after(writeWithin)
		r.says(1, late)
		r.want(generated("img:9", "two")...)
		r.after(time.Hour)
		r.says(1, late)
		r.expect("default/web-n/c")
		close(answers)
		r.after(time.Minute)
		r.says(1, "answers again")
		r.hasSaved("(one) two")
	})
}

// Many writes, each of which the disk takes in time, are not a disk that does not answer.
func TestManyWritesMayTakeLongInAll(t *testing.T) {
	live(t, func(r *rig) {
		slow := func() error { time.Sleep(writeWithin / 4); return errors.New("full") }
		err := diskWrites{r.sync.shared}.await(r.Context(), "records", slices.Repeat([]func() error{slow}, 20)...)
		if got := strings.Count(fmt.Sprint(err), "full"); got != 20 {
			t.Errorf("%d of 20 errors: %v", got, err)
		}
		r.says(0, "does not answer")
	})
}

// An agent ends though its disk does not answer.
func TestAnAgentDoesNotWaitForADiskThatDoesNotAnswer(t *testing.T) {
	live(t, func(r *rig) {
		answers := make(chan struct{})
		r.sync.keeps.write = func() error {
			<-answers
			return nil
		}
		r.want(generated("img:1", "one")...)
		r.after(time.Second)
		begin := time.Now()
		r.stop()
		r.stop = func() {}
		if took := time.Since(begin); took > writeWithin {
			r.Errorf("it took %s to end", took)
		}
		close(answers)
	})
}
