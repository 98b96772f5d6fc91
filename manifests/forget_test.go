package manifests

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
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
