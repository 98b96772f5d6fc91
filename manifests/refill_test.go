package manifests

import (
	"os"
	"path/filepath"
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
