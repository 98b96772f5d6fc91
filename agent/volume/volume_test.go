package volume

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/disk"
)

// testPod mounts each volume in its one container.
func testPod(volumes ...v1.Volume) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u1"},
		Spec:       v1.PodSpec{Volumes: volumes, Containers: []v1.Container{{Name: "main"}}},
	}
	for _, v := range volumes {
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	return p
}

func emptyDir(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
}

func inMemory(name, limit string) v1.Volume {
	e := &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}
	if limit != "" {
		e.SizeLimit = new(resource.MustParse(limit))
	}
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: e}}
}

func hostPath(path string, kind v1.HostPathType) v1.Volume {
	return v1.Volume{Name: "h", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

// testRoot is a root directory whose mounts go with the test.
func testRoot(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount and to change owners")
	}
	root := t.TempDir()
	t.Cleanup(func() { unmountAll(t, root) })
	return root
}

func unmountAll(t *testing.T, dir string) {
	t.Helper()
	below, err := mountsBelow(dir)
	if err != nil {
		t.Error(err)
	}
	for i := len(below) - 1; i >= 0; i-- {
		if err := unix.Unmount(below[i].path, unix.UMOUNT_NOFOLLOW); err != nil {
			t.Errorf("unmount %s: %v", below[i].path, err)
		}
	}
}

// must is for steps of a test that have no business failing.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func setUpPod(t *testing.T, root string, p *v1.Pod) map[string]Mount {
	t.Helper()
	m, err := SetUp(t.Context(), root, p, Input{})
	must(t, err)
	return m
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	i, err := os.Lstat(path)
	must(t, err)
	return i.Mode()
}

func TestSetUpMakesThePodsDirectories(t *testing.T) {
	root := testRoot(t)
	m := setUpPod(t, root, testPod(emptyDir("data")))
	dir := filepath.Join(root, "pods/u1")
	for path, want := range map[string]fs.FileMode{
		"": 0o750, "volumes": 0o750, "plugins": 0o750, "volumes/kubernetes.io~empty-dir": 0o750, "volumes/kubernetes.io~empty-dir/data": 0o777,
	} {
		if got := mode(t, filepath.Join(dir, path)); got != want|fs.ModeDir {
			t.Errorf("%s: mode %v", path, got)
		}
	}
	if got, want := m["data"], (Mount{HostPath: filepath.Join(dir, "volumes/kubernetes.io~empty-dir/data"), Managed: true}); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestSetUpAgainTouchesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		v    v1.Volume
	}{{"on disk", emptyDir("data")}, {"in memory", inMemory("data", "")}} {
		t.Run(c.name, func(t *testing.T) {
			root := testRoot(t)
			p := testPod(c.v)
			p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(777))}
			dir := setUpPod(t, root, p)["data"].HostPath
			file := filepath.Join(dir, "file")
			must(t, os.WriteFile(file, []byte("kept"), 0o600))
			must(t, os.Chmod(dir, 0o700)) // as a container may
			setUpPod(t, root, p)
			if b, err := os.ReadFile(file); string(b) != "kept" || err != nil {
				t.Errorf("the file reads %q, %v", b, err)
			}
			if mode(t, dir) != 0o700|fs.ModeDir || mode(t, file) != 0o600 {
				t.Errorf("modes %v, %v", mode(t, dir), mode(t, file))
			}
			if below, _ := mountsBelow(root); len(below) > 1 {
				t.Errorf("mounted %v", below)
			}
		})
	}
}

func TestSetUpFinishesWhatWasInterrupted(t *testing.T) {
	root := testRoot(t)
	p := testPod(emptyDir("data"))
	dir := setUpPod(t, root, p)["data"].HostPath
	must(t, os.Remove(filepath.Join(root, "pods/u1/plugins/kubernetes.io~empty-dir/data/ready")))
	must(t, os.Chmod(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	setUpPod(t, root, p)
	if mode(t, dir) != 0o777|fs.ModeDir {
		t.Errorf("mode %v", mode(t, dir))
	}
	if _, err := os.Lstat(filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
}

// What is left of a volume may be its mark alone: the folder is made again, as it was made first.
func TestAnEmptyDirThatIsGoneIsMadeAgain(t *testing.T) {
	root, group := testRoot(t), int64(4242)
	p := testPod(emptyDir("data"))
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	dir := setUpPod(t, root, p)["data"].HostPath
	was := mode(t, dir)
	must(t, os.RemoveAll(dir))
	setUpPod(t, root, p)
	if now := mode(t, dir); now != was || groupOf(t, dir) != 4242 {
		t.Errorf("it was %v, and is %v of the group %d", was, now, groupOf(t, dir))
	}
}

// endsLater is a context that ends after a number of questions whether it has, as an agent is killed
// between two steps.
type endsLater struct {
	context.Context
	left int
}

func (c *endsLater) Err() error {
	c.left--
	if c.left < 0 {
		return context.Canceled
	}
	return nil
}

// After a reboot the mark of a volume in memory is there, and the volume is not. An agent that is
// killed between the steps in which it makes it again leaves what the next one completes.
func TestAMemoryVolumeThatIsHalfMadeAgainIsCompleted(t *testing.T) {
	root, group := testRoot(t), int64(4242)
	p := testPod(inMemory("data", ""))
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	dir := setUpPod(t, root, p)["data"].HostPath
	for left := range 4 {
		must(t, unmount(dir))
		_, err := SetUp(&endsLater{context.Background(), left}, root, p, Input{})
		if left == 0 && err == nil {
			t.Error("it does not end at all")
		}
		setUpPod(t, root, p)
		if got := groupOf(t, dir); got != 4242 || mode(t, dir)&fs.ModeSetgid == 0 {
			t.Errorf("after an end at step %d it is of the group %d, with %v", left, got, mode(t, dir))
		}
	}
}

func TestMemoryVolumes(t *testing.T) {
	for _, c := range []struct {
		name, limit string
		memory      int64
		want        uint64 // bytes
	}{
		{"limited by itself", "1Mi", 8 << 20, 1 << 20},
		{"limited by the node", "16Mi", 8 << 20, 8 << 20},
		{"no limit of its own", "", 8 << 20, 8 << 20},
		{"a limit of nothing", "0", 8 << 20, 8 << 20},
		{"node unknown", "1Mi", 0, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := testRoot(t)
			p := testPod(inMemory("data", c.limit))
			m, err := SetUp(t.Context(), root, p, Input{Memory: c.memory})
			must(t, err)
			var s unix.Statfs_t
			must(t, unix.Statfs(m["data"].HostPath, &s))
			if s.Type != unix.TMPFS_MAGIC || s.Blocks*uint64(s.Bsize) != c.want || mode(t, m["data"].HostPath) != 0o777|fs.ModeDir|fs.ModeSticky {
				t.Errorf("type %x, %d bytes, mode %v", s.Type, s.Blocks*uint64(s.Bsize), mode(t, m["data"].HostPath))
			}
		})
	}
}

func TestMemoryVolumeComesBackAfterAPowerCut(t *testing.T) {
	root := testRoot(t)
	p := testPod(inMemory("data", "1Mi"))
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(777))}
	dir := setUpPod(t, root, p)["data"].HostPath
	must(t, unix.Unmount(dir, 0)) // the mark is on disk, the mount is not
	setUpPod(t, root, p)
	if below, _ := mountsBelow(dir); len(below) != 1 || mode(t, dir) != 0o777|fs.ModeDir|fs.ModeSetgid|fs.ModeSticky {
		t.Errorf("mounted %v, mode %v", below, mode(t, dir))
	}
}

func TestGroupOwnsEmptyDirs(t *testing.T) {
	for want, v := range map[fs.FileMode]v1.Volume{0: emptyDir("data"), fs.ModeSticky: inMemory("data", "1Mi")} {
		root := testRoot(t)
		p := testPod(v)
		p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(777))}
		dir := setUpPod(t, root, p)["data"].HostPath
		i, err := os.Stat(dir)
		must(t, err)
		if gid := i.Sys().(*syscall.Stat_t).Gid; gid != 777 || i.Mode() != 0o777|fs.ModeDir|fs.ModeSetgid|want {
			t.Errorf("gid %d mode %v", gid, i.Mode())
		}
	}
}

func TestSetGroupGoesThroughTheTreeButNotThroughLinks(t *testing.T) {
	root := testRoot(t)
	outside, dir := filepath.Join(root, "outside"), filepath.Join(root, "dir")
	must(t, os.WriteFile(outside, nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "sub/file"), nil, 0o400))
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	in, err := disk.OpenDir(dir, 0)
	must(t, err)
	defer in.Close()
	must(t, setGroup(t.Context(), in, 777, readWrite))
	for path, want := range map[string]fs.FileMode{"dir": 0o770 | fs.ModeDir | fs.ModeSetgid, "dir/sub": 0o770 | fs.ModeDir | fs.ModeSetgid, "dir/sub/file": 0o660, "outside": 0o600} {
		i, err := os.Lstat(filepath.Join(root, path))
		must(t, err)
		gid := i.Sys().(*syscall.Stat_t).Gid
		if i.Mode() != want || (gid == 777) != (path != "outside") {
			t.Errorf("%s: mode %v gid %d", path, i.Mode(), gid)
		}
	}
}

func TestHostPathTypes(t *testing.T) {
	root := testRoot(t)
	at := func(name string) string { return filepath.Join(root, name) }
	must(t, os.Mkdir(at("dir"), 0o755))
	must(t, os.WriteFile(at("file"), nil, 0o644))
	must(t, os.Symlink(at("dir"), at("link")))
	l, err := net.Listen("unix", at("sock"))
	must(t, err)
	defer l.Close()
	must(t, unix.Mknod(at("block"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 200))))
	for _, c := range []struct {
		path string
		kind v1.HostPathType
		want string // kind it is not
	}{
		{at("none"), v1.HostPathUnset, ""},
		{at("dir"), v1.HostPathDirectory, ""}, {at("link"), v1.HostPathDirectory, ""}, {at("file"), v1.HostPathDirectory, "directory"}, {at("none"), v1.HostPathDirectory, "directory"},
		{at("made/deep"), v1.HostPathDirectoryOrCreate, ""}, {at("file"), v1.HostPathDirectoryOrCreate, "directory"},
		{at("file"), v1.HostPathFile, ""}, {at("dir"), v1.HostPathFile, "file"}, {at("none"), v1.HostPathFile, "file"},
		{at("made/new"), v1.HostPathFileOrCreate, ""}, {at("dir"), v1.HostPathFileOrCreate, "file"},
		{at("sock"), v1.HostPathDirectory, "directory"}, {at("sock"), v1.HostPathDirectoryOrCreate, "directory"},
		{at("sock"), v1.HostPathFile, "file"}, {at("sock"), v1.HostPathFileOrCreate, "file"}, {at("dir"), v1.HostPathSocket, "socket file"},
		{at("sock"), v1.HostPathSocket, ""}, {at("file"), v1.HostPathSocket, "socket file"}, {at("none"), v1.HostPathSocket, "socket file"},
		{"/dev/null", v1.HostPathCharDev, ""}, {at("block"), v1.HostPathCharDev, "character device"},
		{at("block"), v1.HostPathBlockDev, ""}, {"/dev/null", v1.HostPathBlockDev, "block device"},
	} {
		t.Run(string(c.kind)+" "+filepath.Base(c.path), func(t *testing.T) {
			m, err := SetUp(t.Context(), root, testPod(hostPath(c.path, c.kind)), Input{})
			if c.want == "" {
				if err != nil || m["h"] != (Mount{HostPath: c.path}) {
					t.Errorf("got %+v, %v", m, err)
				}
				return
			}
			want := `MountVolume.SetUp failed for volume "h" : hostPath type check failed: ` + c.path + " is not a " + c.want
			if err == nil || err.Error() != want {
				t.Errorf("got %v", err)
			}
		})
	}
	if mode(t, at("made")) != 0o755|fs.ModeDir || mode(t, at("made/deep")) != 0o755|fs.ModeDir || mode(t, at("made/new")) != 0o644 {
		t.Errorf("modes %v %v", mode(t, at("made/deep")), mode(t, at("made/new")))
	}
}

func TestSetUpRefuses(t *testing.T) {
	root := testRoot(t)
	medium := emptyDir("v")
	medium.EmptyDir.Medium = "Tape"
	for _, c := range []struct {
		name string
		v    v1.Volume
		want string
	}{
		{"backward path", hostPath("/tmp/../etc", ""), "must not contain '..'"},
		{"unknown type", hostPath("/tmp", "Odd"), "Odd is an invalid volume type"},
		{"no parent to create in", hostPath(filepath.Join(root, "no/file"), v1.HostPathFileOrCreate), "no such file"},
		{"unknown medium", medium, `unknown storage medium "Tape"`},
		{"backward name", emptyDir(".."), "cannot be a file name"},
		{"name with a slash", emptyDir("a/b"), "cannot be a file name"},
		{"other kinds", v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}}, "not supported yet"},
	} {
		if _, err := SetUp(t.Context(), root, testPod(c.v), Input{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	for _, uid := range []string{"", ".", "..", "../x", "a/b"} {
		if err := Prepare(root, uid); err == nil {
			t.Errorf("uid %q is taken", uid)
		}
		if err := TearDown(t.Context(), root, uid); err == nil {
			t.Errorf("uid %q is torn down", uid)
		}
	}
}

func TestVolumesThatNobodyMountsAreLeftAlone(t *testing.T) {
	root := testRoot(t)
	p := testPod(emptyDir("a"), v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}})
	p.Spec.Containers[0].VolumeMounts = nil
	p.Spec.InitContainers = []v1.Container{{Name: "i", VolumeMounts: []v1.VolumeMount{{Name: "a"}}}}
	if m := setUpPod(t, root, p); len(m) != 1 || m["a"].HostPath == "" {
		t.Errorf("got %v", m)
	}
}

func TestSetUpDoesNotFollowLinksBelowTheRoot(t *testing.T) {
	root := testRoot(t)
	elsewhere := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "pods"), 0o750))
	must(t, os.Symlink(elsewhere, filepath.Join(root, "pods/u1")))
	if _, err := SetUp(t.Context(), root, testPod(emptyDir("data")), Input{}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("got %v", err)
	}
	if e, _ := os.ReadDir(elsewhere); len(e) != 0 {
		t.Errorf("made %v through a link", e)
	}
}

func TestTerminationLog(t *testing.T) {
	root := testRoot(t)
	a, err := TerminationLog(root, "u1", "main")
	must(t, err)
	b, err := TerminationLog(root, "u1", "main")
	must(t, err)
	if a == b || len(filepath.Base(a)) != 8 || filepath.Dir(a) != filepath.Join(root, "pods/u1/containers/main") || mode(t, a) != 0o666 || mode(t, filepath.Dir(a)) != 0o750|fs.ModeDir {
		t.Errorf("%s, %s: mode %v", a, b, mode(t, a))
	}
	if _, err := TerminationLog(root, "u1", "../main"); err == nil {
		t.Error("a backward container name is taken")
	}
}

// Where the runtime says a termination log is, a volume of the machine may be.
func TestOnlyTerminationLogsAreRemoved(t *testing.T) {
	root := testRoot(t)
	a, err := TerminationLog(root, "u1", "main")
	must(t, err)
	b, err := TerminationLog(root, "u1", "main")
	must(t, err)
	c, err := TerminationLog(root, "u1", "main")
	must(t, err)
	precious := filepath.Join(t.TempDir(), filepath.Base(a))
	notes := filepath.Join(filepath.Dir(a), "notes")
	must(t, os.WriteFile(precious, nil, 0o600))
	must(t, os.WriteFile(notes, nil, 0o600))
	must(t, RemoveTerminationLog(root, "u1", "main", notes))
	must(t, RemoveTerminationLog(root, "u1", "main", precious)) // by its name it is ours
	must(t, RemoveTerminationLog(root, "u1", "main", precious))
	kept(t, precious)
	gone(t, a)
	must(t, SweepTerminationLogs(root, "u1", "main", []string{"/elsewhere/" + filepath.Base(b)}))
	kept(t, notes)
	kept(t, b)
	gone(t, c)
	must(t, SweepTerminationLogs(root, "u1", "other", nil))
	if err := SweepTerminationLogs(root, "u1", "../main", nil); err == nil {
		t.Error("swept outside")
	}
}

func TestTerminationMessage(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("short"), []byte("bye\n"), 0o666))
	must(t, os.WriteFile(at("long"), []byte(strings.Repeat("a", 5000)+"end"), 0o666))
	must(t, os.Symlink(at("short"), at("link")))
	must(t, unix.Mkfifo(at("fifo"), 0o666))
	for name, want := range map[string]string{
		"short": "bye\n", "long": strings.Repeat("a", 4093) + "end", "link": "", "fifo": "", "none": "", ".": "",
	} {
		if got := TerminationMessage(at(name)); got != want {
			t.Errorf("%s: got %d bytes %.20q", name, len(got), got)
		}
	}
}

func TestParseMount(t *testing.T) {
	m, err := parseMount(`98 1 254:0 /a /with\040blank\134 rw,noatime shared:2 master:1 - ext4 /dev/root rw`)
	if err != nil || m != (mountPoint{path: `/with blank\`, kind: "ext4", shared: true}) {
		t.Errorf("got %+v, %v", m, err)
	}
	if m, err := parseMount(`98 1 254:0 / /x rw master:1 - tmpfs tmpfs rw`); err != nil || m.shared {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := parseMount("odd"); err == nil {
		t.Error("an odd line is taken")
	}
	if below, err := mountsBelow(filepath.Join(t.TempDir(), "none")); below != nil || err != nil {
		t.Errorf("got %v, %v", below, err)
	}
}
