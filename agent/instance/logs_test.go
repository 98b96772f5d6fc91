package instance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/podspec"
	"monopod/manifests"
)

// A container that mounts the folder of logs can mount in it, too, where the mount reaches the machine.
func TestLogsAreNotRemovedThroughMounts(t *testing.T) {
	f := &Files{Disk: &Disk{}}
	f.Disk.PodLogs, f.Key = t.TempDir(), manifests.Key{Namespace: "default", Name: "web"}
	other := t.TempDir()
	kept, at := filepath.Join(other, "kept"), filepath.Join(f.logDir("u1"), "c", "mount")
	if err := errors.Join(os.WriteFile(kept, nil, 0o600), os.MkdirAll(at, 0o755), unix.Mount(other, at, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	if err := f.RemoveLogs(t.Context(), "u1"); !errors.Is(err, disk.ErrMounted) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Error(err)
	}
	if err := errors.Join(unix.Unmount(at, 0), f.RemoveLogs(t.Context(), "u1")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(f.logDir("u1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("they are still there: %v", err)
	}
}

// A pod may have a name, namespace and uid that are together longer than a file name: it never
// starts, and has no logs, but it goes.
func TestLogsOfAPodWithALongNameAreNoneToRemove(t *testing.T) {
	f := &Files{Disk: &Disk{PodLogs: t.TempDir(), LogLinks: t.TempDir()}, Key: manifests.Key{Namespace: "default", Name: strings.Repeat("a", 253)}}
	if err := f.MakeLogDir(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f.Key.Name, UID: "u1"}}); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("a folder of logs was made: %v", err)
	}
	if err := f.RemoveLogs(t.Context(), "u1"); err != nil {
		t.Error(err)
	}
}

// Log shippers, who are not root, read there.
func TestTheUmaskChangesNoModesOfLogFolders(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	f := &Files{Disk: &Disk{}}
	f.Disk.PodLogs, f.Key = filepath.Join(t.TempDir(), "log", "pods"), manifests.Key{Namespace: "default", Name: "web"}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}}
	if err := errors.Join(f.MakeLogDir(p), f.MakeContainerLogDir(p, "c")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(f.Disk.PodLogs), f.Disk.PodLogs, f.logDir("u1"), filepath.Join(f.logDir("u1"), "c")} {
		if i, err := os.Stat(dir); err != nil || i.Mode() != fs.ModeDir|0o755 {
			t.Errorf("%s: %v, %v", dir, i.Mode(), err)
		}
	}
}

func TestLogFoldersAreNotMadeBehindLinks(t *testing.T) {
	outside := t.TempDir()
	f := &Files{Disk: &Disk{}}
	f.Disk.PodLogs, f.Key = t.TempDir(), manifests.Key{Namespace: "ns", Name: "web"}
	p := &v1.Pod{}
	for _, link := range []string{"ns_web_a", "ns_web_b/c"} {
		path := filepath.Join(f.Disk.PodLogs, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(outside, path)); err != nil {
			t.Fatal(err)
		}
	}
	for _, uid := range []string{"a", "b"} {
		p.UID = "x"
		if err := f.MakeContainerLogDir(p, "c"); err != nil {
			t.Fatal(err)
		}
		p.UID = types.UID(uid)
		if err := f.MakeContainerLogDir(p, "c"); err == nil || !strings.Contains(err.Error(), "is a link") {
			t.Errorf("of %s: %v", uid, err)
		}
	}
	if made, err := os.ReadDir(outside); err != nil || len(made) != 0 {
		t.Errorf("made %s: %v", made, err)
	}
}

// The machine gets another name while a next version is prepared: the pod with the new name takes
// the uid, which is computed from its file, and no pod uses the logs of the former name any more.
func TestTheLogsOfAWithdrawnVersionGoThoughAnotherPodHasItsUID(t *testing.T) {
	root := &checkpoint.Root{Dir: t.TempDir()}
	logs := t.TempDir()
	of := func(name string) (*Files, *v1.Pod) {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "0123456789abcdef0123456789abcdef"}}
		f := &Files{Key: manifests.KeyOf(p), Disk: &Disk{Root: root, PodLogs: logs}}
		if err := f.MakeContainerLogDir(p, "main"); err != nil {
			t.Fatal(err)
		}
		return f, p
	}
	former, withdrawn := of("web-old")
	next := &checkpoint.Checkpoint{Pod: withdrawn, Next: true}
	if err := root.SaveNext(next); err != nil {
		t.Fatal(err)
	}
	_, now := of("web-new")
	if err := root.Save(&checkpoint.Checkpoint{Pod: now}); err != nil {
		t.Fatal(err)
	}
	if err := former.Discard(t.Context(), next, ""); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(logs, "*"))
	if want := podspec.LogDir(logs, manifests.KeyOf(now), string(now.UID)); !slices.Equal(left, []string{want}) {
		t.Errorf("%v are left, want %s", left, want)
	}
	if root.Remnant(string(now.UID)) != checkpoint.NoRemnant {
		t.Error("the pod with the new name has lost its checkpoint")
	}
}
