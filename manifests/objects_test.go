package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
)

func mapYAML(name, value string, more ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %q}\n%s", name, value, strings.Join(more, "\n"))
}

// describeObjects: "x@file=value ... | held:file bad:file: problem".
func describeObjects(s Snapshot) string {
	var parts []string
	for _, o := range s.Objects {
		value := ""
		if o.ConfigMap != nil {
			value = o.ConfigMap.Data["k"]
		}
		parts = append(parts, o.Key().Name+"@"+filepath.Base(o.File)+"="+value)
	}
	for _, f := range s.Files {
		if f.Held {
			parts = append(parts, "held:"+filepath.Base(f.Path))
		}
		for _, p := range f.Problems {
			if !p.Warning {
				parts = append(parts, "bad:"+filepath.Base(f.Path))
				break
			}
		}
	}
	return strings.Join(parts, " ")
}

// put writes a file of the folder and looks at it.
func (p *looker) place(name, text string) *looker {
	p.Helper()
	must(p.T, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	return p.lookAgain()
}

// lookAgain looks until all that is gone must be known to be.
func (p *looker) lookAgain() *looker {
	for range 3 {
		p.full, p.now = true, p.now.Add(p.Settle+noWriter)
		p.step(p.now)
	}
	return p
}

func (p *looker) hasObjects(want string) {
	p.Helper()
	if got := describeObjects(*p.last); got != want {
		p.Errorf("objects %q, want %q", got, want)
	}
}

func TestObjectsComeChangeAndGoWithTheirFiles(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", mapYAML("x", "1")+"---\n"+podYAML("web")+"---\n"+mapYAML("z", "1")).hasObjects("x@a.yaml=1 z@a.yaml=1")
	same := p.last.Objects[1]
	p.place("a.yaml", mapYAML("x", "2")+"---\n"+podYAML("web")+"---\n"+mapYAML("z", "1")).hasObjects("x@a.yaml=2 z@a.yaml=1")
	if p.last.Objects[1] != same {
		t.Error("an object that did not change is another one")
	}
	p.place("a.yaml", podYAML("web")+"---\n"+mapYAML("z", "1")).hasObjects("z@a.yaml=1")
	must(t, os.Rename(p.dir+"/a.yaml", p.dir+"/b.yaml"))
	p.lookAgain().hasObjects("z@b.yaml=1")
	must(t, os.Remove(p.dir+"/b.yaml"))
	p.lookAgain().hasObjects("")
}

// An object goes only when that is proven, as a pod does.
func TestOnlyProofRemovesAnObject(t *testing.T) {
	both := mapYAML("x", "1") + "---\n" + mapYAML("z", "1")
	rows := []struct {
		name string
		do   func(p *looker)
		want string
	}{
		{"a file that cannot be parsed", func(p *looker) { p.place("a.yaml", "kind: [\n") }, "x@a.yaml=1 z@a.yaml=1 held:a.yaml bad:a.yaml"},
		{"an empty file", func(p *looker) { p.place("a.yaml", "") }, "x@a.yaml=1 z@a.yaml=1 held:a.yaml bad:a.yaml"},
		{"one that is wrong", func(p *looker) { p.place("a.yaml", mapYAML("x", "2")+"---\n"+mapYAML("z", "2", "dat: {}")) },
			"x@a.yaml=2 z@a.yaml=1 held:a.yaml bad:a.yaml"},
		{"one that is gone beside an error", func(p *looker) { p.place("a.yaml", mapYAML("x", "2")+"---\n"+podYAML("web", "foo: bar")) },
			"x@a.yaml=2 z@a.yaml=1 held:a.yaml bad:a.yaml"},
		{"a folder that is gone", func(p *looker) { must(p.T, os.Rename(p.dir, p.dir+".away")) }, "x@a.yaml=1 z@a.yaml=1"},
		{"a file that moved and is wrong there", func(p *looker) {
			must(p.T, os.Remove(p.dir+"/a.yaml"))
			p.place("b.yaml", mapYAML("x", "2", "dat: {}"))
		}, "x@b.yaml=1 held:b.yaml bad:b.yaml"},
		{"a pipe in its place", func(p *looker) {
			must(p.T, errors.Join(os.Remove(p.dir+"/a.yaml"), os.Mkdir(p.dir+"/a.yaml", 0o700)))
		}, "x@a.yaml=1 z@a.yaml=1 held:a.yaml bad:a.yaml"},
		{"its removal", func(p *looker) { must(p.T, os.Remove(p.dir+"/a.yaml")) }, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := at(t, t.TempDir(), nil)
			p.place("a.yaml", both).hasObjects("x@a.yaml=1 z@a.yaml=1")
			row.do(p)
			p.lookAgain().hasObjects(row.want)
		})
	}
}

func TestAnObjectThatIsGoneForAMomentStays(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", mapYAML("x", "1"))
	must(t, os.Remove(p.dir+"/a.yaml"))
	p.full = true
	p.step(p.now)
	p.hasObjects("x@a.yaml=1")
	if due := p.wake(); due.After(p.now.Add(p.Settle)) {
		t.Errorf("looks again only after %s", due.Sub(p.now))
	}
}

// Of two files for one object the one in use stays, and the other is a problem.
func TestTheFileInUseKeepsItsObject(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("b.yaml", mapYAML("x", "b")).hasObjects("x@b.yaml=b")
	p.place("a.yaml", mapYAML("x", "a")).hasObjects("x@b.yaml=b bad:a.yaml")
	if got, want := p.last.Files[0].Problems[0].Error(), p.dir+"/a.yaml:1:1: metadata.name: "+p.dir+
		"/b.yaml gives the ConfigMap default/x already: remove one of the two, or rename it"; got != want {
		t.Errorf("problem %q\nwant %q", got, want)
	}
	must(t, os.Remove(p.dir+"/b.yaml"))
	p.lookAgain().hasObjects("x@a.yaml=a")
}

func TestAnImmutableObjectKeepsItsContent(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", mapYAML("x", "1", "immutable: true"))
	p.place("a.yaml", mapYAML("x", "2", "immutable: true")).hasObjects("x@a.yaml=1 held:a.yaml bad:a.yaml")
	if got := p.last.Files[0].Problems[0].Message; !strings.HasPrefix(got, "ConfigMap default/x is immutable, and its content stays: give ") {
		t.Errorf("problem %q", got)
	}
	p.place("a.yaml", mapYAML("x", "1")).hasObjects("x@a.yaml=1 held:a.yaml bad:a.yaml")
	p.place("a.yaml", podYAML("web")).hasObjects("")
	p.place("a.yaml", mapYAML("x", "2", "immutable: true")).hasObjects("x@a.yaml=2")
}

func TestObjectsOfTheURLFollowItsAnswers(t *testing.T) {
	p := at(t, t.TempDir(), asks)
	get := func(a Answer, want string) {
		t.Helper()
		p.answered(a)
		p.step(p.now)
		p.hasObjects(want)
	}
	get(Answer{Data: []byte(mapYAML("x", "1"))}, "x@pods=1")
	get(Answer{Problem: "answers 500"}, "x@pods=1 held:pods bad:pods")
	get(Answer{Data: []byte("kind: [\n")}, "x@pods=1 held:pods bad:pods")
	get(Answer{Data: []byte(podYAML("a")), Unproven: true}, "x@pods=1")
	get(Answer{Data: []byte(mapYAML("x", "2"))}, "x@pods=2")
	p.place("a.yaml", mapYAML("x", "3")).hasObjects("x@a.yaml=3 bad:pods")
	must(t, os.Remove(p.dir+"/a.yaml"))
	p.lookAgain().hasObjects("x@pods=2")
	get(Answer{Data: []byte(podYAML("a"))}, "")
}

// What one agent saved the next one knows, until the folder proves it gone.
func TestObjectsOutliveAnAgent(t *testing.T) {
	var saved []*Object
	dir := t.TempDir()
	remembers := func(c *SourceConfig) {
		c.KnownObjects, c.Record = saved, recordOf(t, dir)
		c.SaveObjects = func(all []*Object) error { saved = all; return nil }
	}
	p := at(t, dir, remembers)
	p.place("a.yaml", mapYAML("x", "1"))
	if len(saved) != 1 {
		t.Fatalf("saved %v", saved)
	}
	must(t, os.WriteFile(dir+"/a.yaml", []byte("kind: [\n"), 0o600))
	next := at(t, dir, remembers)
	next.lookAgain().hasObjects("x@a.yaml=1 held:a.yaml bad:a.yaml")
	must(t, os.Remove(dir+"/a.yaml"))
	next.lookAgain().hasObjects("")
	if len(saved) != 0 {
		t.Errorf("saved %v", saved)
	}
}

func TestObjectsThatCannotBeSavedAreSavedLater(t *testing.T) {
	var log bytes.Buffer
	full, saves := true, 0
	p := at(t, t.TempDir(), func(c *SourceConfig) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.SaveObjects = func([]*Object) error {
			if saves++; full {
				return errors.New("disk full")
			}
			return nil
		}
	})
	p.place("a.yaml", mapYAML("x", "1")).hasObjects("x@a.yaml=1")
	if saves < 2 || strings.Count(log.String(), "cannot be saved") != 1 {
		t.Errorf("%d saves, log %q", saves, &log)
	}
	full = false
	p.lookAgain()
	before := saves
	if p.lookAgain(); saves != before {
		t.Error("saved again without a change")
	}
}

// Each problem of an object's document names the object, and a file tells which it names.
func TestAFileTellsWhichObjectsItNames(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", mapYAML("x", "1")+"---\n"+mapYAML("z", "1", "dat: {}\n")+"---\n"+mapYAML("x", "2"))
	p.place("b.yaml", mapYAML("x", "1"))
	x, z := ObjectKey{Kind: documents.ConfigMap, Namespace: "default", Name: "x"}, ObjectKey{Kind: documents.ConfigMap, Namespace: "default", Name: "z"}
	want := []map[ObjectKey]bool{{x: true, z: false}, {x: true}}
	for k, about := range []string{"ConfigMap default/z, ConfigMap default/x", "ConfigMap default/x"} {
		f := p.last.Files[k]
		if !maps.Equal(f.Objects, want[k]) {
			t.Errorf("%s names %v, want %v", f.Path, f.Objects, want[k])
		}
		var said []string
		for _, p := range f.Problems {
			said = append(said, p.Object)
		}
		if got := strings.Join(said, ", "); got != about {
			t.Errorf("the problems of %s are about %s, want %s: %v", f.Path, got, about, f.Problems)
		}
	}
}

// A claim may stand in any file of the folder. Once it is gone the last good version runs on.
func TestAClaimOfAnotherFileCounts(t *testing.T) {
	const lacks = "no file gives the PersistentVolumeClaim data"
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
	says := func(p *looker, want bool) {
		t.Helper()
		said := slices.ContainsFunc(p.last.Files, func(f *File) bool {
			return slices.ContainsFunc(f.Problems, func(q decode.Problem) bool { return strings.Contains(q.Message, lacks) })
		})
		if said != want {
			t.Errorf("it is said: %v, of %+v", said, p.last.Files)
		}
	}
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", podYAML("web", "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"))
	if len(p.last.Pods) != 0 {
		t.Fatalf("%d pods", len(p.last.Pods))
	}
	says(p, true)
	p.place("z.yaml", claim)
	if len(p.last.Pods) != 1 || p.last.Pods[0].File != p.dir+"/a.yaml" {
		t.Fatalf("with the claim: %v", p.last.Pods)
	}
	says(p, false)
	must(t, os.Remove(p.dir+"/z.yaml"))
	p.lookAgain()
	if len(p.last.Pods) != 1 {
		t.Errorf("without the claim %d pods run", len(p.last.Pods))
	}
	says(p, true)
}

// podman prints pods without the claims of their volumes, which it names after them.
func TestAVolumeOfPodmansNeedsNoClaim(t *testing.T) {
	const note = "no file gives the PersistentVolumeClaim data: as a volume of podman's it is a directory that outlives the pod all the same"
	says := func(p *looker, want bool) {
		t.Helper()
		said := slices.ContainsFunc(p.last.Files, func(f *File) bool {
			return slices.ContainsFunc(f.Problems, func(q decode.Problem) bool { return q.Message == note && q.Warning && q.Note })
		})
		if said != want {
			t.Errorf("it is said: %v, of %+v", said, p.last.Files)
		}
	}
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", podYAML("web", "volumes: [{name: data-pvc, persistentVolumeClaim: {claimName: data}}]"))
	if len(p.last.Pods) != 1 {
		t.Fatalf("%d pods", len(p.last.Pods))
	}
	pod := p.last.Pods[0]
	says(p, true)
	p.place("z.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n")
	says(p, false)
	must(t, os.Remove(p.dir+"/z.yaml"))
	p.lookAgain()
	says(p, true)
	if len(p.last.Pods) != 1 || p.last.Pods[0] != pod {
		t.Errorf("the pod is %v, was %v", p.last.Pods, pod)
	}
	p.place("a.yaml", podYAML("web", "volumes: [{name: data-pvc, persistentVolumeClaim: {claimName: data}}, {name: other, persistentVolumeClaim: {claimName: typo}}]"))
	if f := p.last.Files[0]; len(f.Problems) != 2 || f.Problems[0].Warning == f.Problems[1].Warning {
		t.Errorf("a volume of another name: %+v", f.Problems)
	}
}

// A node that takes its manifests from a URL instead of a folder has the URL's objects, as it has the
// URL's pods, and the other way round. What is not given there stays, and is said to, until it is
// forgotten.
func TestObjectsMoveBetweenTheFolderAndTheURL(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", podYAML("a")+"---\n"+mapYAML("x", "1")+"---\n"+mapYAML("z", "1")).hasObjects("x@a.yaml=1 z@a.yaml=1")
	p = p.next(func(c *SourceConfig) { asks(c); c.Dir, c.KnownObjects = "", p.last.Objects })
	p.hasObjects("x@a.yaml=1 z@a.yaml=1")
	p.gets(Answer{Data: []byte(podYAML("a") + "---\n" + mapYAML("x", "2"))}, "a@pods=busybox folder ?")
	p.lookAgain().hasObjects("x@pods=2 z@a.yaml=1")
	p.gets(Answer{}, "a@pods=busybox folder")
	if next := p.wake(); next.Sub(p.now) < 5*time.Second {
		t.Errorf("the next look is after %s", next.Sub(p.now))
	}
	if say := fmt.Sprint(p.last.Problems); !strings.Contains(say, "no manifest folder is given: the pods and objects of files stay") || !strings.Contains(say, "forget POD, configmap/NAME or secret/NAME") {
		t.Errorf("said is %s", say)
	}
	p.forgetsObject("z", "")
	p.lookAgain().hasObjects("x@pods=2")
	if len(p.last.Problems) > 0 {
		t.Errorf("all is forgotten, and said is %v", p.last.Problems)
	}
	p = at(t, t.TempDir(), func(c *SourceConfig) { c.KnownObjects = p.last.Objects })
	p.lookAgain().hasObjects("x@pods=2 held:pods bad:pods")
	p.place("b.yaml", mapYAML("x", "3")).hasObjects("x@b.yaml=3")
}

// A folder that gave objects alone, as the pods come from the URL, is proven to be gone as another is.
func TestAFolderOfObjectsAloneIsProven(t *testing.T) {
	base, link := t.TempDir(), filepath.Join(t.TempDir(), "m")
	for _, name := range []string{"x", "z"} {
		must(t, os.WriteFile(filepath.Join(base, name+".yaml"), []byte(mapYAML(name, "1")), 0o600))
	}
	point(t, link, base)
	p := at(t, link, asks)
	p.gets(two(), "a@pods=busybox b@pods=busybox")
	p.hasObjects("x@x.yaml=1 z@z.yaml=1")
	stay := func(why string) {
		t.Helper()
		p.lookAgain().hasObjects("x@x.yaml=1 z@z.yaml=1")
		if say := fmt.Sprint(p.last.Problems); !strings.Contains(say, why) {
			t.Errorf("said is %s, want %s", say, why)
		}
	}
	point(t, link, elsewhere(t))
	stay("is another file system than before")
	p = p.next(func(c *SourceConfig) { asks(c); c.KnownObjects = p.last.Objects })
	stay("is another file system than before")
	empty := t.TempDir()
	point(t, link, empty)
	stay("is another folder than before, without a valid manifest")
	p.place("x.yaml", mapYAML("x", "2")).hasObjects("x@x.yaml=2 z@z.yaml=1")
	p.now = p.now.Add(p.RemovalSettle)
	p.lookAgain().hasObjects("x@x.yaml=2")
	if len(p.last.Problems) > 0 {
		t.Errorf("said is %v", p.last.Problems)
	}
	must(t, os.Remove(filepath.Join(empty, "x.yaml")))
	p.lookAgain().hasObjects("")
	point(t, link, t.TempDir())
	p.lookAgain()
	if next := p.wake(); next.Sub(p.now) < 5*time.Second {
		t.Errorf("an empty folder of which nothing is known is read again after %s", next.Sub(p.now))
	}
}

// Of a folder that may be another one, or is not complete yet, objects are treated as pods are.
func TestObjectsOfAFolderInDoubt(t *testing.T) {
	start := func(t *testing.T) (p *looker, lead func(to string)) {
		base, link := t.TempDir(), filepath.Join(t.TempDir(), "m")
		must(t, os.WriteFile(filepath.Join(base, "a.yaml"), []byte(podYAML("a")+"---\n"+mapYAML("x", "1")), 0o600))
		point(t, link, base)
		p = at(t, link, asks)
		p.gets(Answer{Data: []byte(mapYAML("x", "0"))}, "a@a.yaml=busybox bad:pods")
		p.hasObjects("x@a.yaml=1 bad:pods")
		return p, func(to string) { point(t, link, to) }
	}
	t.Run("in another file on another file system", func(t *testing.T) {
		p, lead := start(t)
		lead(elsewhere(t))
		p.lookAgain().hasObjects("x@a.yaml=1 bad:pods")
		p.place("b.yaml", mapYAML("x", "2")).hasObjects("x@b.yaml=2 bad:pods")
	})
	t.Run("not in its file on another file system", func(t *testing.T) {
		p, lead := start(t)
		lead(elsewhere(t))
		p.place("a.yaml", mapYAML("z", "1")).hasObjects("x@a.yaml=1 z@a.yaml=1 bad:pods")
	})
	t.Run("not yet in a folder that is filled", func(t *testing.T) {
		p, lead := start(t)
		lead(t.TempDir())
		p.place("a.yaml", podYAML("b")).hasObjects("x@a.yaml=1 bad:pods")
		p.place("c.yaml", mapYAML("x", "2")).hasObjects("x@c.yaml=2 bad:pods")
	})
}
