package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"monopod/agent/checkpoint"
	"monopod/manifests"
	"monopod/manifests/layers"
	"monopod/manifests/shell"
)

// manifestFolder checks whether the agent alone decides what runs.
func manifestFolder(_ context.Context, m *Machine) (found []Finding) {
	dirs := m.Config.Manifests
	if len(dirs) == 0 {
		if m.Config.ManifestURL != "" {
			return []Finding{ok("from a URL alone")}
		}
		return []Finding{warn("name it with --manifests, or staticPodPath in the settings", "no folder of manifests is given")}
	}
	if err := layers.Check(dirs); err != nil {
		return []Finding{fail("", "%v", err)}
	}
	for _, dir := range dirs {
		found = append(found, m.folderOfManifests(dir)...)
	}
	return found
}

// folderOfManifests checks one folder.
func (m *Machine) folderOfManifests(dir string) (found []Finding) {
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []Finding{fail("mkdir --parents --mode 700 "+shell.Word(dir), "%s is not there", dir)}
	}
	if err != nil {
		return []Finding{fail("", "%v", err)}
	}
	for _, p := range manifests.Writable(dir, m.Config.Root) {
		why, remedy, _ := strings.Cut(p.Message, ": ")
		f := warn(remedy, "%s %s", p.File, why)
		if !m.Config.InsecureManifests && checkpoint.IsNew(m.Config.Root) { // the agent does not start
			f.Level = Error
		}
		found = append(found, f)
	}
	return orOK(found, "%s, which root alone may write", dir)
}

// Below these shares of a disk there is a warning; image collection begins at 15 % free, and
// DiskPressure is at 10 % and at 5 % of inodes.
const (
	fewBytes  = 15
	fewInodes = 5
)

// disks checks whether there is room, and whether data is kept.
func disks(ctx context.Context, m *Machine) (found []Finding) {
	type place struct{ what, dir string }
	places := []place{{"the root dir", m.Config.Root}, {"logs", m.Config.PodLogs}}
	if dir := m.imageDir(ctx); dir != "" {
		places = append(places, place{"images", dir})
	}
	seen := map[unix.Fsid]bool{}
	for _, p := range places {
		dir := existing(p.dir)
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			found = append(found, fail("", "%s: %v", dir, err))
			continue
		}
		if p.what == "the root dir" {
			found = append(found, keeps(m.Config.Root, &s)...)
		}
		if seen[s.Fsid] || s.Blocks == 0 {
			continue
		}
		seen[s.Fsid] = true
		if free := 100 * s.Bavail / s.Blocks; free < fewBytes {
			found = append(found, warn("make room, or monopod removes images that no pod needs", "%d %% of the disk of %s (%s) is free", free, p.what, dir))
		}
		if s.Files > 0 && 100*s.Ffree/s.Files < fewInodes {
			found = append(found, warn("remove files", "%d of %d inodes of the disk of %s (%s) are free", s.Ffree, s.Files, p.what, dir))
		}
	}
	return orOK(found, "room in %s and %s", m.Config.Root, m.Config.PodLogs)
}

// imageDir returns a folder on the disk of the images; "": not known.
func (m *Machine) imageDir(ctx context.Context) string {
	if m.silent != nil {
		return ""
	}
	dir, _ := m.Runtime.ImageDir(ctx)
	return dir
}

// keeps checks whether a root dir takes data, and keeps them over a reboot.
func keeps(dir string, s *unix.Statfs_t) (found []Finding) {
	if at := existing(dir); unix.Access(at, unix.W_OK) != nil || s.Flags&unix.ST_RDONLY != 0 {
		found = append(found, fail("choose another with --root, or mount it for writing", "the root dir %s cannot be written", dir))
	}
	if s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC {
		found = append(found, warn("choose another with --root", "the root dir %s is in memory: a reboot forgets what ran", dir))
	}
	return found
}

// existing returns the nearest folder above that exists.
func existing(dir string) string {
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
	}
	return dir
}
