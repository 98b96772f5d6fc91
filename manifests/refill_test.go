package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A folder that was made again and goes away before it counts as complete is looked for now and
// then, not without a pause, and waits as long once it is back.
func TestAFolderThatGoesWhileItIsFilledIsLookedForNowAndThen(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "manifests"), time.Now()
	s := NewSource(SourceConfig{Dir: dir, Options: node1, Unwatched: true})
	look := func(after time.Duration) {
		t.Helper()
		now = now.Add(after)
		s.full = true
		s.step(now)
		if next := s.wake(); !next.After(now) {
			t.Fatalf("the next look is due %s before this one", now.Sub(next))
		}
	}
	fill := func(pods ...string) {
		t.Helper()
		must(t, os.Mkdir(dir, 0o755))
		for _, pod := range pods {
			must(t, os.WriteFile(filepath.Join(dir, pod+".yaml"), []byte(podYAML(pod)), 0o644))
		}
	}
	fill("a", "b")
	look(0)
	must(t, os.Rename(dir, dir+".old"))
	fill("a")
	look(time.Second)
	must(t, os.Rename(dir, dir+".new"))
	look(time.Second)
	look(time.Minute)
	must(t, os.Rename(dir+".new", dir))
	look(time.Second)
	look(20 * time.Second)
	if n := len(s.current); n != 2 {
		t.Errorf("%d pods are left in a folder that is not complete", n)
	}
	look(11 * time.Second)
	look(time.Second)
	if n := len(s.current); n != 1 {
		t.Errorf("%d pods are left in a folder that is complete", n)
	}
}

// What the URL gives too does not take the place of a pod whose file may still come to a folder that
// was made again.
func TestTheURLWaitsForAFolderThatIsFilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	must(t, os.Mkdir(dir, 0o755))
	fill(t, dir, "a", "b")
	p := at(t, dir, asks)
	p.gets(Answer{Data: []byte(image(podYAML("a"), "nginx"))}, "a@a.yaml=busybox b@b.yaml=busybox bad:pods")
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Mkdir(dir, 0o755))
	p.put("a.yaml", podYAML("c"))
	look := func(after time.Duration, want string) {
		t.Helper()
		p.now, p.full = p.now.Add(after), true
		p.step(p.now)
		got := strings.TrimSuffix(describeSnapshot(*p.last), " bad:pods") // the URL may be told that a file gives its pod
		if got != want {
			t.Errorf("after %s the snapshot is %q, want %q", after, got, want)
		}
	}
	look(time.Second, "a@a.yaml=busybox b@b.yaml=busybox c@a.yaml=busybox")
	p.put("d.yaml", podYAML("a"))
	look(time.Second, "a@d.yaml=busybox b@b.yaml=busybox c@a.yaml=busybox")
	must(t, os.Remove(filepath.Join(dir, "d.yaml")))
	look(time.Second, "a@d.yaml=busybox b@b.yaml=busybox c@a.yaml=busybox")
	look(p.RemovalSettle, "a@pods=nginx c@a.yaml=busybox")
}
