package volume

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

var data = types.NamespacedName{Namespace: "default", Name: "data"}

func claimVolume(name string, readOnly bool) v1.Volume {
	source := &v1.PersistentVolumeClaimVolumeSource{ClaimName: name, ReadOnly: readOnly}
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: source}}
}

// claimPod is a pod with a group that mounts the claim data.
func claimPod(uid types.UID, group int64) *v1.Pod {
	p := testPod(claimVolume("data", false))
	p.UID, p.Spec.SecurityContext = uid, &v1.PodSecurityContext{FSGroup: &group}
	return p
}

func groupOf(t *testing.T, path string) uint32 {
	t.Helper()
	var s unix.Stat_t
	must(t, unix.Lstat(path, &s))
	return s.Gid
}

func TestAClaimOutlivesItsPods(t *testing.T) {
	root := testRoot(t)
	dir := filepath.Join(root, "volumes", "default_data")
	m := setUpPod(t, root, testPod(claimVolume("data", false)))
	if got, want := m["v"], (Mount{HostPath: dir, Managed: true}); got != want {
		t.Fatalf("got %+v", got)
	}
	if got := mode(t, dir); got != fs.ModeDir|0o777 {
		t.Errorf("mode %v", got)
	}
	if got := mode(t, filepath.Dir(dir)); got != fs.ModeDir|0o750 {
		t.Errorf("mode of the folder of all: %v", got)
	}
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600))
	must(t, os.Chmod(dir, 0o700)) // a container may
	must(t, Release(t.Context(), root, "u1"))
	must(t, TearDown(t.Context(), root, "u1"))
	again := testPod(claimVolume("data", true))
	again.UID = "u2"
	if m := setUpPod(t, root, again); !m["v"].ReadOnly || m["v"].HostPath != dir {
		t.Errorf("got %+v", m["v"])
	}
	if b, err := os.ReadFile(filepath.Join(dir, "file")); string(b) != "kept" || mode(t, dir).Perm() != 0o700 {
		t.Errorf("%q, %v, mode %v", b, err, mode(t, dir))
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("left over: %v", entries)
	}
}

func TestAClaimIsOfItsPodsGroup(t *testing.T) {
	root := testRoot(t)
	dir := ClaimDir(root, data)
	file := filepath.Join(dir, "file")
	setUpPod(t, root, claimPod("u1", 4242))
	if got, m := groupOf(t, dir), mode(t, dir); got != 4242 || m&fs.ModeSetgid == 0 {
		t.Errorf("group %d, mode %v", got, m)
	}
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Chown(file, 0, 7))
	setUpPod(t, root, claimPod("u1", 4242))
	if got := groupOf(t, file); got != 7 {
		t.Errorf("a running pod's file was given to %d", got)
	}
	must(t, TearDown(t.Context(), root, "u1"))
	matching := claimPod("u2", 4242)
	matching.Spec.SecurityContext.FSGroupChangePolicy = new(v1.FSGroupChangeOnRootMismatch)
	setUpPod(t, root, matching)
	if got := groupOf(t, file); got != 7 {
		t.Errorf("OnRootMismatch: given to %d", got)
	}
	setUpPod(t, root, claimPod("u3", 4242))
	if got := groupOf(t, file); got != 4242 {
		t.Errorf("a new pod's file is of %d", got)
	}
}

// A container nests folders in its claim; the next pod with an fsGroup must start all the same.
func TestTheGroupOfDeepFoldersTakesLittle(t *testing.T) {
	root := testRoot(t)
	dir := setUpPod(t, root, testPod(claimVolume("data", false)))["v"].HostPath
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	name := strings.Repeat("d", 250)
	for range 1200 {
		must(t, unix.Mkdirat(at, name, 0o700))
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(at))
		at = next
	}
	defer unix.Close(at)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = SetUp(t.Context(), root, claimPod("u2", 4242), Input{})
	runtime.ReadMemStats(&after)
	must(t, err)
	var deepest unix.Stat_t
	must(t, unix.Fstat(at, &deepest))
	if all := after.TotalAlloc - before.TotalAlloc; deepest.Gid != 4242 || all > 16<<20 {
		t.Errorf("the deepest folder is of %d, %d MB allocated", deepest.Gid, all>>20)
	}
	must(t, TearDown(t.Context(), root, "u2"))
	must(t, RemoveClaim(t.Context(), root, data, func() ([]string, error) { return nil, nil }))
}

// What is mounted in a claim is not the pod's: neither it nor what is in it gets the group.
func TestTheGroupStopsAtMounts(t *testing.T) {
	root, other := testRoot(t), t.TempDir()
	dir := setUpPod(t, root, testPod(claimVolume("data", false)))["v"].HostPath
	file := filepath.Join(other, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, name := range []string{"folder", "file"} {
		must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		must(t, os.MkdirAll(filepath.Join(dir, "folder"), 0o700))
		source := map[string]string{"folder": other, "file": file}[name]
		at := filepath.Join(dir, name)
		must(t, unix.Mount(source, at, "", unix.MS_BIND, ""))
		defer unix.Unmount(at, 0)
	}
	setUpPod(t, root, claimPod("u2", 4242))
	for _, path := range []string{other, file} {
		if got := groupOf(t, path); got == 4242 {
			t.Errorf("%s was given to the group", path)
		}
	}
}

func TestAClaimThatIsALinkIsRefused(t *testing.T) {
	root := testRoot(t)
	must(t, os.Mkdir(filepath.Join(root, "volumes"), 0o750))
	must(t, os.Symlink("/etc", ClaimDir(root, data)))
	_, err := SetUp(t.Context(), root, testPod(claimVolume("data", false)), Input{})
	if err == nil || !strings.Contains(err.Error(), "volumes/default_data is in the way: not a directory") {
		t.Error(err)
	}
}

func TestClaimsAreListedAndRemoved(t *testing.T) {
	root := testRoot(t)
	if all, err := Claims(root); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	setUpPod(t, root, testPod(claimVolume("data", false)))
	must(t, os.WriteFile(filepath.Join(ClaimDir(root, data), "file"), nil, 0o600))
	if all, err := Claims(root); err != nil || len(all) != 1 || all[0] != data {
		t.Errorf("%v, %v", all, err)
	}
	used := func() ([]string, error) { return []string{"default/web"}, nil }
	unused := func() ([]string, error) { return nil, nil }
	unknown := func() ([]string, error) { return nil, errors.New("no idea") }
	for _, c := range []struct {
		name  string
		users func() ([]string, error)
		claim types.NamespacedName
		want  string
	}{
		{"used", used, data, "volume default/data: pod default/web uses it: remove the pod's manifest first"},
		{"checkpoints that cannot be read", unknown, data, "volume default/data: no idea"},
		{"none", unused, types.NamespacedName{Namespace: "default", Name: "x"}, "there is no volume default/x"},
		{"out of the folder", unused, types.NamespacedName{Namespace: "default", Name: "../../x"}, `volume "default_../../x" cannot be a file name`},
	} {
		if err := RemoveClaim(t.Context(), root, c.claim, c.users); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	must(t, unix.Mount("tmpfs", ClaimDir(root, data), "tmpfs", 0, ""))
	if err := RemoveClaim(t.Context(), root, data, unused); err == nil || !strings.Contains(err.Error(), "something is mounted at") {
		t.Error(err)
	}
	must(t, unmount(ClaimDir(root, data)))
	must(t, RemoveClaim(t.Context(), root, data, unused))
	if all, err := Claims(root); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if trash, _ := os.ReadDir(filepath.Join(root, "trash")); len(trash) != 0 {
		t.Errorf("left over: %v", trash)
	}
}

// A pod that starts while its volume is removed must not get the one that goes.
func TestNoPodGetsAClaimThatIsBeingRemoved(t *testing.T) {
	root := testRoot(t)
	setUpPod(t, root, testPod(claimVolume("data", false)))
	during := func() ([]string, error) {
		other := testPod(claimVolume("data", false))
		other.UID = "u2"
		_, err := SetUp(t.Context(), root, other, Input{})
		if err == nil || !strings.Contains(err.Error(), "a volume is being removed") {
			t.Errorf("set up meanwhile: %v", err)
		}
		return nil, nil
	}
	must(t, RemoveClaim(t.Context(), root, data, during))
	setUpPod(t, root, testPod(claimVolume("data", false)))
}

// What marks a claim as given to its pod's group can be done without: the pod that has it may start.
func TestAClaimIsMountedFromADiskThatTakesNoMark(t *testing.T) {
	root, claims := testRoot(t), t.TempDir()
	must(t, errors.Join(unix.Mount("tmpfs", root, "tmpfs", 0, "size=64k"), os.Mkdir(filepath.Join(root, "volumes"), 0o750)))
	must(t, unix.Mount(claims, filepath.Join(root, "volumes"), "", unix.MS_BIND, ""))
	setUpPod(t, root, claimPod("u1", 1000))
	must(t, Prepare(root, "u2"))
	must(t, unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	m := setUpPod(t, root, claimPod("u2", 2000))["v"]
	if m.HostPath != ClaimDir(root, data) {
		t.Errorf("mounted %+v", m)
	}
	if g := groupOf(t, m.HostPath); g != 2000 {
		t.Errorf("it is of group %d", g)
	}
}

// A version that mounts a claim which never was has it before the one that runs is stopped.
func TestANewClaimIsMadeWithWhatAVersionHasForItself(t *testing.T) {
	root := testRoot(t)
	must(t, SetUpOwn(t.Context(), root, claimPod("u1", 1000), input()))
	kept(t, ClaimDir(root, data))
	was, err := readRecord(root, data)
	must(t, err)
	if was != claimMade {
		t.Errorf("recorded as %q", was)
	}
	must(t, os.Remove(ClaimDir(root, data)))
	var missing *MissingClaimError
	if err := SetUpOwn(t.Context(), root, claimPod("u2", 1000), input()); !errors.As(err, &missing) {
		t.Errorf("made again: %v", err)
	}
}

// The folder of the claims may be a disk of its own, from which nothing can be moved into the trash.
func TestAClaimOnADiskOfTheClaimsIsRemoved(t *testing.T) {
	root := testRoot(t)
	claims := filepath.Join(root, claimsDir)
	must(t, os.Mkdir(claims, 0o750))
	must(t, unix.Mount("tmpfs", claims, "tmpfs", 0, ""))
	setUpPod(t, root, testPod(claimVolume("data", false)))
	must(t, os.MkdirAll(filepath.Join(ClaimDir(root, data), "folder", "below"), 0o700))
	must(t, os.MkdirAll(filepath.Join(claims, retired+"1", "folder"), 0o700)) // of a removal that was killed
	must(t, RemoveClaim(t.Context(), root, data, func() ([]string, error) { return nil, nil }))
	if left := names(t, claims); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	setUpPod(t, root, testPod(claimVolume("data", false)))
	if left := names(t, ClaimDir(root, data)); len(left) > 0 {
		t.Errorf("the new one has %v", left)
	}
	must(t, os.MkdirAll(filepath.Join(claims, retired+"1", "folder"), 0o700))
	RecordFormerClaims(t.Context(), root, slog.New(slog.DiscardHandler)) // of the next agent
	if left := names(t, claims); !slices.Equal(left, []string{filepath.Base(ClaimDir(root, data))}) {
		t.Errorf("after the start of an agent: %v", left)
	}
}

// What is deleted without a question is what a removal named. A person moves a claim aside, too, before
// a restore, and often to such a name.
func TestWhatAPersonMovedAsideStays(t *testing.T) {
	root := testRoot(t)
	setUpPod(t, root, testPod(claimVolume("data", false)))
	claims := filepath.Join(root, claimsDir)
	aside := []string{".old-1", ".old-default_data", ".removed"}
	for _, name := range aside {
		must(t, os.MkdirAll(filepath.Join(claims, name, "folder"), 0o700))
	}
	RecordFormerClaims(t.Context(), root, slog.New(slog.DiscardHandler))
	must(t, RemoveClaim(t.Context(), root, data, func() ([]string, error) { return nil, nil }))
	if left := names(t, claims); !slices.Equal(left, aside) {
		t.Errorf("left are %v", left)
	}
}
