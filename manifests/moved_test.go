package manifests

import (
	"os"
	"path/filepath"
	"testing"
)

// After a restart a pod is gone only if what gave it last proves that, though its last good version
// was accepted when another gave it.
func TestWhatGaveAPodLastProvesItGoneAfterARestart(t *testing.T) {
	t.Run("the URL first, a file last", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "pods")
		fill(t, dir)
		p := at(t, dir, asks)
		p.gets(two(), "a@pods=busybox b@pods=busybox")
		accepted := p.last.Pods
		p.put("a.yaml", podYAML("a"))
		p.expect("a@a.yaml=busybox b@pods=busybox bad:pods")
		without := Answer{Data: []byte(podYAML("b"))}
		p.gets(without, "a@a.yaml=busybox b@pods=busybox")
		must(t, os.Rename(dir, dir+".away"))
		later := p.nextOf(accepted, func(c *SourceConfig) { c.URL, c.Cached = aURL, &without })
		later.gets(without, "a@a.yaml=busybox b@pods=busybox folder ?")
		later.expect("a@a.yaml=busybox b@pods=busybox folder ?")
		must(t, os.Rename(dir+".away", dir))
		must(t, os.Remove(filepath.Join(dir, "a.yaml")))
		later.expect("b@pods=busybox")
	})
	t.Run("a file first, the URL last", func(t *testing.T) {
		p := at(t, t.TempDir(), asks)
		p.put("a.yaml", podYAML("a"))
		p.expect("a@a.yaml=busybox ?")
		accepted := p.last.Pods
		p.gets(two(), "a@a.yaml=busybox b@pods=busybox bad:pods")
		must(t, os.Remove(filepath.Join(p.dir, "a.yaml")))
		p.expect("a@pods=busybox b@pods=busybox")
		later := p.nextOf(accepted, asks)
		later.gets(Answer{Problem: "answers 500"}, "a@pods=busybox held:pods bad:pods ?")
		later.expect("a@pods=busybox held:pods bad:pods ?")
		later.gets(Answer{Data: []byte(podYAML("b"))}, "b@pods=busybox")
	})
}

// nextOf is next for an agent that accepted these versions.
func (p *looker) nextOf(accepted []*Pod, configure func(*SourceConfig)) *looker {
	p.Helper()
	return at(p.T, p.dir, func(c *SourceConfig) {
		c.Record, c.Known = *p.kept, accepted
		configure(c)
	})
}

// A file of another folder does not prove that the URL gives the pod now.
func TestTheURLTakesNoPodOfAFileInAnotherFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pods")
	fill(t, dir, "a")
	p := at(t, dir, asks)
	p.gets(Answer{Data: []byte(image(podYAML("a"), "nginx"))}, "a@a.yaml=busybox bad:pods")
	must(t, os.Rename(dir, dir+".away"))
	fill(t, dir)
	p.expect("a@a.yaml=busybox bad:pods folder ?")
	p.put("a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}")
	p.expect("a@a.yaml=busybox bad:pods folder ?")
	p.put("a.yaml", podYAML("b"))
	p.expect("a@pods=nginx b@a.yaml=busybox")
}
