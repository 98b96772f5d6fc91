package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// soon looks at the folder after a while that is shorter than Settle, and checks what runs.
func (p *looker) soon(want string) {
	p.Helper()
	p.now = p.now.Add(50 * time.Millisecond)
	p.full = true
	p.step(p.now)
	if got := describeSnapshot(*p.last); got != want {
		p.Errorf("snapshot %q, want %q, problems %v", got, want, p.last.Problems)
	}
}

func (p *looker) rename(from, to string) {
	must(p.T, os.Rename(filepath.Join(p.dir, from), filepath.Join(p.dir, to)))
}

func (p *looker) put(name, text string) {
	must(p.T, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644))
}

func TestPodsOutliveTheSwapOfTheirFiles(t *testing.T) {
	for aside, then := range map[string][2]string{
		"tmp":         {"a@a.yaml=busybox b@b.yaml=busybox", "a@b.yaml=busybox b@a.yaml=busybox"},
		".a.yaml.swp": {"a@a.yaml=busybox b@b.yaml=busybox", "a@b.yaml=busybox b@a.yaml=busybox"},
		"c.yaml":      {"a@c.yaml=busybox b@b.yaml=busybox", "a@c.yaml=busybox b@a.yaml=busybox"}, // a manifest, too
	} {
		t.Run(aside, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, "a", "b")
			p := at(t, dir, nil)
			first := map[string]string{}
			for _, pod := range p.last.Pods {
				first[pod.Name] = string(pod.UID)
			}
			p.rename("a.yaml", aside)
			p.soon("a@a.yaml=busybox b@b.yaml=busybox")
			p.rename("b.yaml", "a.yaml")
			p.soon(then[0])
			p.rename(aside, "b.yaml")
			p.soon(then[1])
			p.expect("a@b.yaml=busybox b@a.yaml=busybox")
			for _, pod := range p.last.Pods {
				if string(pod.UID) != first[pod.Name] {
					t.Errorf("%s is another pod", pod.Name)
				}
			}
		})
	}
}

func TestAPodThatItsFileGivesNoMoreIsGoneAfterAWhile(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	p := at(t, dir, nil)
	p.put("a.yaml", podYAML("b"))
	p.soon("a@a.yaml=busybox b@a.yaml=busybox")
	p.expect("b@a.yaml=busybox")
}

func TestARenamedPodWithATypoHoldsTheFormer(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	p := at(t, dir, nil)
	p.put("a.yaml", podYAML("b", "foo: bar"))
	p.expect("a@a.yaml=busybox held:a.yaml bad:a.yaml ?")
	p.put("a.yaml", podYAML("b"))
	p.expect("b@a.yaml=busybox")
}

func TestARenamedFileWithATypoHoldsItsPods(t *testing.T) {
	dir := t.TempDir()
	p := at(t, dir, nil)
	p.put("junk.yaml", "kind: [") // it is there before the pods are, and gives none of them
	p.expect("bad:junk.yaml ?")
	fill(t, dir, "a", "x")
	p.expect("a@a.yaml=busybox x@x.yaml=busybox bad:junk.yaml ?")
	p.now = p.now.Add(p.Settle)
	p.put("z.yaml", podYAML("z"))
	p.soon("a@a.yaml=busybox x@x.yaml=busybox z@z.yaml=busybox bad:junk.yaml ?")
	must(t, os.Remove(filepath.Join(dir, "z.yaml")))
	p.expect("a@a.yaml=busybox x@x.yaml=busybox bad:junk.yaml ?")
	p.put("a.yaml", strings.Replace(podYAML("a"), "spec:", "spec: [", 1))
	p.rename("a.yaml", "b.yaml")
	p.soon("a@a.yaml=busybox x@x.yaml=busybox bad:b.yaml bad:junk.yaml ?")
	p.expect("a@b.yaml=busybox x@x.yaml=busybox held:b.yaml bad:b.yaml bad:junk.yaml ?")
	p.put("b.yaml", podYAML("c"))
	p.expect("c@b.yaml=busybox x@x.yaml=busybox bad:junk.yaml ?") // a may be in neither
	must(t, os.Remove(filepath.Join(dir, "x.yaml")))
	p.expect("c@b.yaml=busybox bad:junk.yaml ?")
}
