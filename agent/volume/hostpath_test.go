package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// A kubelet sets volumes up in any order, and again until all succeed. kubeadm sorts them by name.
func TestFoldersAreCreatedBeforeTheFilesInThem(t *testing.T) {
	root := testRoot(t)
	file, dir := hostPath(filepath.Join(root, "logs/audit/log"), v1.HostPathFileOrCreate), hostPath(filepath.Join(root, "logs/audit"), v1.HostPathDirectoryOrCreate)
	file.Name, dir.Name = "a", "b"
	p := testPod(file, dir)
	if err := LookAtShared(root, p); err != nil {
		t.Errorf("before: %v", err)
	}
	m, err := SetUp(t.Context(), root, p, Input{})
	if err != nil || m["a"].HostPath != file.HostPath.Path || m["b"].HostPath != dir.HostPath.Path {
		t.Errorf("got %+v, %v", m, err)
	}
}

// /var/run is a link on most machines: a file and its folder may be named by different ways.
func TestAFolderThatIsCreatedIsKnownByEachOfItsPaths(t *testing.T) {
	for name, c := range map[string]struct{ dir, file string }{
		"the file's path has a link":           {"run/app", "link/app/lock"},
		"the folder's path has a link":         {"link/app", "run/app/lock"},
		"the folder is what a link leads to":   {"later", "missing/lock"},
		"the folder is below what a link is":   {"later/deep", "missing/deep/lock"},
		"the folder is in what a link is, too": {"later/deep/app", "missing/deep/lock"},
	} {
		root := testRoot(t)
		at := func(name string) string { return filepath.Join(root, name) }
		must(t, errors.Join(os.Mkdir(at("run"), 0o755), os.Symlink("run", at("link")), os.Symlink(at("later"), at("missing"))))
		file, dir := hostPath(at(c.file), v1.HostPathFileOrCreate), hostPath(at(c.dir), v1.HostPathDirectoryOrCreate)
		file.Name, dir.Name = "a", "b"
		p := testPod(file, dir)
		looked := LookAtShared(root, p)
		_, err := SetUp(t.Context(), root, p, Input{})
		if looked != nil || err != nil {
			t.Errorf("%s: the look says %v, and the set-up %v", name, looked, err)
		}
	}
}

// What the look before a stop lets pass must not fail once the former version is gone.
func TestALookFindsWhatCannotBeCreated(t *testing.T) {
	root := testRoot(t)
	at := func(name string) string { return filepath.Join(root, name) }
	must(t, errors.Join(os.WriteFile(at("file"), nil, 0o644), os.Mkdir(at("dir"), 0o755), os.Mkdir(at("fixed"), 0o755), os.Symlink(at("none"), at("link"))))
	must(t, unix.Mount("tmpfs", at("fixed"), "tmpfs", unix.MS_RDONLY, ""))
	const file, dir = v1.HostPathFileOrCreate, v1.HostPathDirectoryOrCreate
	for _, c := range []struct {
		path string
		kind v1.HostPathType
		want string // "": it can
	}{
		{"dir/new", file, ""},
		{"dir/other/deep", dir, ""},
		{"none/new", file, "ROOT/none/new cannot be created: ROOT/none does not exist"},
		{"none/deep/new", dir, ""},
		{"file/new", file, "stat ROOT/file/new: not a directory"},
		{"file/new/deep", dir, "stat ROOT/file/new/deep: not a directory"},
		{"link", file, "ROOT/link cannot be created: ROOT/link is a link to what does not exist"},
		{"link/new", dir, "ROOT/link/new cannot be created: ROOT/link is a link to what does not exist"},
		{"fixed/new", file, "ROOT/fixed/new cannot be created: ROOT/fixed: read-only file system"},
		{"fixed/new/deep", dir, "ROOT/fixed/new/deep cannot be created: ROOT/fixed: read-only file system"},
	} {
		p := testPod(hostPath(at(c.path), c.kind))
		got, looked := "", LookAtShared(root, p)
		if looked != nil {
			got = strings.ReplaceAll(strings.TrimPrefix(looked.Error(), `MountVolume.SetUp failed for volume "h" : `), root, "ROOT")
		}
		if got != c.want {
			t.Errorf("%s %s: got %q", c.kind, c.path, got)
		}
		if _, err := SetUp(t.Context(), root, p, Input{}); (err == nil) != (looked == nil) {
			t.Errorf("%s %s: the look says %v, and the set-up %v", c.kind, c.path, looked, err)
		}
		must(t, os.RemoveAll(at("none")))
	}
}
