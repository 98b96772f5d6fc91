package manifests

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"monopod/manifests/documents"
)

func (p *looker) forgets(pod, want string) {
	p.Helper()
	got := ""
	if err := p.forget(p.Context(), Key{Namespace: "default", Name: pod + "-node1"}, p.now); err != nil {
		got = err.Error()
	}
	if got != want {
		p.Errorf("forget %s: %q, want %q", pod, got, want)
	}
}

// doubtful returns a Source of pods a and b whose folder is away: back brings
// it back.
func doubtful(t *testing.T) (p *looker, back func()) {
	base, link := t.TempDir(), filepath.Join(t.TempDir(), "m")
	fill(t, base, "a", "b")
	point(t, link, base)
	p = at(t, link, nil)
	point(t, link, elsewhere(t))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox folder ?")
	return p, func() { point(t, link, base) }
}

func TestOneOfTwoPodsIsForgotten(t *testing.T) {
	p, back := doubtful(t)
	before := p.last.Pods
	p.forgets("a", "")
	p.expect("b@b.yaml=busybox folder ?")
	p.forgets("a", ErrUnknown.Error())
	known := func(c *SourceConfig) { c.Known = before } // the runtime was away: its checkpoint is there still
	p = p.next(known)
	p.expect("b@b.yaml=busybox folder ?")
	p = p.next(known)
	p.expect("b@b.yaml=busybox folder ?")
	back()
	p.expect("a@a.yaml=busybox b@b.yaml=busybox")
	if n := len(p.kept.Forgotten); n != 0 {
		t.Errorf("%d pods count as forgotten", n)
	}
	p.forgets("a", "its manifest is "+filepath.Join(p.dir, "a.yaml")+": remove that file")
	p.expect("a@a.yaml=busybox b@b.yaml=busybox")
}

func TestAllForgottenTheFolderIsTakenAsItIs(t *testing.T) {
	p, _ := doubtful(t)
	p.forgets("a", "")
	p.forgets("b", "")
	p.expect("")
	fill(t, p.dir, "c")
	p.expect("c@c.yaml=busybox")
	must(t, os.Remove(filepath.Join(p.dir, "c.yaml")))
	p.expect("")
	p = p.next(nil)
	if n := len(p.kept.Forgotten); n != 0 {
		t.Errorf("%d pods that are gone count as forgotten", n)
	}
}

func TestAPodOfABadFileIsForgottenUntilTheFileIsGood(t *testing.T) {
	for bad, complete := range map[string]string{"kind: [\n": " ?", podYAML("a", "foo: bar"): ""} {
		dir := t.TempDir()
		fill(t, dir, "a", "b")
		p := at(t, dir, nil)
		must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(bad), 0o644))
		p.expect("a@a.yaml=busybox b@b.yaml=busybox held:a.yaml bad:a.yaml" + complete)
		p.forgets("a", "")
		p.expect("b@b.yaml=busybox bad:a.yaml ?")
		p = p.next(nil)
		p.expect("b@b.yaml=busybox bad:a.yaml ?")
		fill(t, dir, "a")
		p.expect("a@a.yaml=busybox b@b.yaml=busybox")
	}
}

func TestAPodOfAFolderThatIsMissingIsForgotten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	fill(t, dir, "a", "b")
	p := at(t, dir, nil)
	must(t, os.Rename(dir, dir+".old"))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox folder ?")
	p.forgets("a", "")
	p.expect("b@b.yaml=busybox folder ?")
	must(t, os.Rename(dir+".old", dir))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox")
}

func TestWhatCannotBeSavedIsNotForgotten(t *testing.T) {
	p, _ := doubtful(t)
	p.Save = func(Record) error { return errors.New("no space left on device") }
	p.forgets("a", "no space left on device")
	p.expect("a@a.yaml=busybox b@b.yaml=busybox folder ?")
}

func TestForgetIsAnsweredByARunningSource(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	f := watchFolder(t, dir, nil)
	f.until("a@a.yaml=busybox")
	must(t, os.WriteFile(f.path("a.yaml"), []byte("kind: [\n"), 0o644))
	f.until("a@a.yaml=busybox held:a.yaml bad:a.yaml ?")
	if err := f.src.Forget(t.Context(), Key{Namespace: "default", Name: "a-node1"}); err != nil {
		t.Fatal(err)
	}
	f.until("bad:a.yaml ?")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewSource(SourceConfig{}).Forget(ended, Key{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a Source that does not run answers %v", err)
	}
}

// keepsObjects is a Source that knows what the one before it saved of objects.
func keepsObjects(saved *[]*Object) func(*SourceConfig) {
	return func(c *SourceConfig) {
		c.KnownObjects = *saved
		c.SaveObjects = func(all []*Object) error { *saved = all; return nil }
	}
}

func (p *looker) forgetsObject(name, want string) {
	p.Helper()
	got := ""
	if err := p.forgetObject(p.Context(), ObjectKey{Kind: documents.ConfigMap, Namespace: "default", Name: name}, p.now); err != nil {
		got = err.Error()
	}
	if got != want {
		p.Errorf("forget %s: %q, want %q", name, got, want)
	}
}

func TestAnObjectWithoutAManifestIsForgotten(t *testing.T) {
	for name, spoil := range map[string]func(p *looker){
		"the folder is away": func(p *looker) { must(p.T, os.Rename(p.dir, p.dir+".away")) },
		"no YAML":            func(p *looker) { p.place("a.yaml", "kind: [\n") },
		"a wrong field": func(p *looker) {
			p.place("a.yaml", mapYAML("x", "2", "dat: {}\n")+"---\n"+mapYAML("z", "2", "dat: {}"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var saved []*Object
			p := at(t, t.TempDir(), keepsObjects(&saved))
			p.place("a.yaml", mapYAML("x", "1")+"---\n"+mapYAML("z", "1"))
			p.forgetsObject("x", "its manifest is "+p.dir+"/a.yaml: remove that file")
			spoil(p)
			p.lookAgain()
			p.forgetsObject("x", "")
			p.forgetsObject("x", ErrUnknown.Error())
			if len(p.last.Objects) != 1 || len(saved) != 1 || saved[0].Key().Name != "z" {
				t.Errorf("there is %v, saved is %v", p.last.Objects, saved)
			}
			p = p.next(keepsObjects(&saved))
			if p.lookAgain(); len(p.last.Objects) != 1 {
				t.Errorf("the next agent has %v", p.last.Objects)
			}
		})
	}
}

func TestAForgottenObjectComesBackWithItsManifest(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", mapYAML("x", "1"))
	p.place("a.yaml", "kind: [\n")
	p.forgetsObject("x", "")
	p.hasObjects("bad:a.yaml")
	p.place("a.yaml", mapYAML("x", "1")).hasObjects("x@a.yaml=1")
}

func TestAnObjectOfADeadURLIsForgottenUntilItAnswers(t *testing.T) {
	var saved []*Object
	text := []byte(mapYAML("x", "1"))
	configure := func(c *SourceConfig) {
		asks(c)
		keepsObjects(&saved)(c)
		c.Cached = &Answer{Data: text}
	}
	p := at(t, t.TempDir(), configure)
	p.hasObjects("x@pods=1")
	p.answered(Answer{Problem: "answers 500"})
	p.forgetsObject("x", "")
	p.hasObjects("held:pods bad:pods")
	p = p.next(configure)
	if len(p.last.Objects) != 0 {
		t.Errorf("the next agent has %v", p.last.Objects)
	}
	p.answered(Answer{Data: text})
	p.step(p.now)
	p.hasObjects("x@pods=1")
	if len(p.kept.Forgotten) != 0 {
		t.Errorf("%v counts as forgotten", p.kept.Forgotten)
	}
}

func TestAnObjectStaysWhenItsEndCannotBeSaved(t *testing.T) {
	full := false
	p := at(t, t.TempDir(), func(c *SourceConfig) {
		c.SaveObjects = func([]*Object) error {
			if full {
				return errors.New("disk full")
			}
			return nil
		}
	})
	p.place("a.yaml", mapYAML("x", "1"))
	p.place("a.yaml", "kind: [\n")
	full = true
	p.forgetsObject("x", "disk full")
	p.lookAgain().hasObjects("x@a.yaml=1 held:a.yaml bad:a.yaml")
}
