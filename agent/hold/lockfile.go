package hold

import (
	"path"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/safefile"
	"monopod/agent/volume"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// LockFile is a file with which a workload keeps updates of its pod away.
type LockFile struct {
	Shown string // its path in the container
	dir   string // the volume's
	below string // where it is in that
}

// lockOf returns the lock file of a pod; ok is false if it has none.
func lockOf(root string, p *v1.Pod) (f LockFile, ok bool) {
	text, given := p.Annotations[decode.AnnotationUpdateLock]
	if !given {
		return f, false
	}
	name, below, ok := decode.UpdateLock(p, text)
	return LockFile{Shown: text, dir: volume.EmptyDir(root, string(p.UID), name), below: below}, ok
}

// There reports whether the file is there, of any kind. What a path leads to by a link
// that the workload made does not count.
func (f LockFile) There() bool {
	dir, name := path.Split(f.below)
	depth := 0
	if dir = strings.Trim(dir, "/"); dir != "" {
		depth = strings.Count(dir, "/") + 1
	}
	d, err := safefile.OpenDir(filepath.Join(f.dir, dir), depth)
	if err != nil {
		return false
	}
	defer d.Close()
	_, err = d.Stat(name)
	return err == nil
}

// lookFor returns which of the files are there.
func lookFor(all map[manifests.Key]LockFile) map[manifests.Key]bool {
	there := map[manifests.Key]bool{}
	for key, f := range all {
		there[key] = f.There()
	}
	return there
}
