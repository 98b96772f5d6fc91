package manifests

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// looker is a manifest folder that a Source looks at when the test says so.
type looker struct {
	*testing.T
	*Source
	dir  string
	now  time.Time
	kept *Record // as it was saved last
}

// at returns a Source of the folder that has read it.
func at(t *testing.T, dir string, configure func(*SourceConfig)) *looker {
	t.Helper()
	p := &looker{T: t, dir: dir, now: time.Now(), kept: &Record{}}
	c := SourceConfig{Dir: dir, Options: node1, Boot: "b1", Save: func(r Record) error { *p.kept = r; return nil }}
	if configure != nil {
		configure(&c)
	}
	*p.kept = c.Record
	p.Source = NewSource(c)
	p.step(p.now)
	t.Cleanup(p.watch.close)
	return p
}

// next returns the Source of the next agent.
func (p *looker) next(configure func(*SourceConfig)) *looker {
	p.Helper()
	return at(p.T, p.dir, func(c *SourceConfig) {
		c.Record = *p.kept
		c.Known = append(c.Known, p.last.Pods...)
		if configure != nil {
			configure(c)
		}
	})
}

// recordOf is what a Source of the folder saves.
func recordOf(t *testing.T, dir string) Record {
	t.Helper()
	f, err := os.Open(dir)
	must(t, err)
	defer f.Close()
	folder, err := folderOf(f, "b1")
	must(t, err)
	return Record{Folder: &folder}
}

// expect looks at the folder until all that is gone must be known to be, and
// checks what shall run then.
func (p *looker) expect(want string) {
	p.Helper()
	for range 3 {
		p.now = p.now.Add(time.Minute)
		p.step(p.now)
	}
	if got := describeSnapshot(*p.last); got != want {
		p.Errorf("snapshot %q, want %q, problems %v", got, want, p.last.Problems)
	}
}

// fill makes a folder with a file for each pod, named as it.
func fill(t *testing.T, dir string, pods ...string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	for _, pod := range pods {
		must(t, os.WriteFile(filepath.Join(dir, pod+".yaml"), []byte(podYAML(pod)), 0o644))
	}
}

// point makes a symlink point elsewhere.
func point(t *testing.T, link, to string) {
	t.Helper()
	must(t, os.Symlink(to, link+".new"))
	must(t, os.Rename(link+".new", link))
}

// elsewhere returns a folder on another file system than that of t.TempDir.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "monopod-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// mount puts an empty file system in memory on dir.
func mount(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("monopod-test", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mounting needs root: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}
