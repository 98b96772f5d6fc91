package once

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/agent/volume"
)

// artifactPod has volumes of its own, a container and an init container.
func artifactPod(host string) *v1.Pod {
	p := made("job", "Never", "c")
	p.Spec.InitContainers = []v1.Container{{Name: "i"}}
	p.Spec.Volumes = []v1.Volume{
		{Name: "out", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: host}}},
		{Name: "info", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}},
	}
	p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{
		{Name: "out", MountPath: "/out"}, {Name: "host", MountPath: "/out/host/", SubPath: "a/b"}, {Name: "info", MountPath: "/info"}, {Name: "out", MountPath: "/x", SubPathExpr: "$(X)"},
		{Name: "out", MountPath: "rel/dir", SubPath: "r"}}
	return p
}

func TestAnArtifactLiesInAVolume(t *testing.T) {
	for _, row := range []struct{ text, volume, within, err string }{
		{"job/c:/out=d", "out", ".", ""},
		{"job:/out/sub/r.xml=d", "out", "sub/r.xml", ""},
		{"default/job/c:/out/host/x=d", "host", "a/b/x", ""},
		{"job/c:/rel/dir/x=d", "out", "r/x", ""}, // the root folder is what a relative path is of
		{"job/c:/outer=d", "monopod-artifact-3", "", ""},
		{"job/i:/out=d", "monopod-artifact-3", "", ""},
		{"job/c:/info/labels=d", "", "", "the path lies in the volume info"},
		{"job/c:/x/y=d", "", "", "the path lies in the volume out"},
		{"job/c:out=d", "", "", "write POD/CONTAINER:/PATH=DIR"},
		{"job/c:/=d", "", "", "write POD/CONTAINER:/PATH=DIR"},
		{"job/c:/out", "", "", "write POD/CONTAINER:/PATH=DIR"},
		{"job/none:/out=d", "", "", `--artifact "job/none" names no pod or container here; there is job/i, job/c`},
	} {
		p := artifactPod("/h")
		a, err := ParseArtifact([]*v1.Pod{p}, row.text)
		switch {
		case row.err != "":
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: %v", row.text, err)
			}
		case err != nil || a.volume.Name != row.volume || a.within != row.within:
			t.Errorf("%s: %v, %+v", row.text, err, a)
		case strings.HasPrefix(row.volume, "monopod"):
			c := containerOf(&p.Spec, a.from[len("job/"):len("job/")+1])
			if m := c.VolumeMounts[len(c.VolumeMounts)-1]; m.Name != row.volume || p.Spec.Volumes[3].EmptyDir == nil {
				t.Errorf("%s: mounts %+v", row.text, c.VolumeMounts)
			}
		}
	}
}

func TestAnArtifactIsCopiedAndNothingElse(t *testing.T) {
	root, to := t.TempDir(), filepath.Join(t.TempDir(), "new", "out")
	p := artifactPod("/h")
	dir := volume.EmptyDir(root, string(p.UID), "out")
	secret := filepath.Join(t.TempDir(), "secret")
	put := func(name, text string, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put(secret, "secret", 0o644)
	put(filepath.Join(dir, "r/junit.xml"), "<x/>", 0o644)
	put(filepath.Join(dir, "r/tool"), "#!", 0o4755)
	put(filepath.Join(to, "junit.xml"), "of an earlier run", 0o644)
	for _, link := range [][2]string{{secret, "r/link"}, {"/", "r/all"}, {"../../../../..", "r/up"}} {
		if err := os.Symlink(link[0], filepath.Join(dir, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "r/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := ParseArtifact([]*v1.Pod{p}, "job/c:/out/r="+to)
	if err != nil {
		t.Fatal(err)
	}
	left, err := a.copy(t.Context(), root)
	slices.Sort(left.names)
	if text := left.String(); err != nil || text != "r/all, r/link, r/pipe, r/up" {
		t.Errorf("left out %s: %v", text, err)
	}
	entries, _ := os.ReadDir(to)
	text, _ := os.ReadFile(filepath.Join(to, "junit.xml"))
	if info, err := os.Stat(filepath.Join(to, "tool")); len(entries) != 2 || string(text) != "<x/>" || err != nil || info.Mode() != 0o755 {
		t.Errorf("copied %v, %q, %v", entries, text, err)
	}
	for path, want := range map[string]string{"/out/r/junit.xml": "", "/out/none": "no such file", "/out/r/up/etc": "escapes"} {
		a, err := ParseArtifact([]*v1.Pod{p}, "job/c:"+path+"="+to)
		if err == nil {
			_, err = a.copy(t.Context(), root)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// hostArtifact is an artifact of all that is in a folder.
func hostArtifact(dir, to string) *Artifact {
	a := &Artifact{pod: artifactPod(dir), within: ".", to: to}
	a.volume = a.pod.Spec.Volumes[1]
	return a
}

func TestACopyHasTheHolesAndTheNamesOfTheFiles(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	sparse, err := os.Create(at("sparse"))
	if err != nil {
		t.Fatal(err)
	}
	_, wrote := sparse.WriteAt([]byte("middle"), 1<<30)
	if err := errors.Join(wrote, sparse.Truncate(3<<30), sparse.Close(), os.MkdirAll(at("a/b"), 0o755), os.WriteFile(at("one"), []byte("one"), 0o600),
		os.Link(at("sparse"), at("a/b/hard")), os.Link(at("sparse"), at("a/other"))); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also over an earlier copy
		if left, err := hostArtifact(dir, to).copy(t.Context(), t.TempDir()); err != nil || left.count > 0 {
			t.Fatalf("left out %s, %v", left, err)
		}
	}
	var first unix.Stat_t
	for _, name := range []string{"sparse", "a/b/hard", "a/other"} {
		var s unix.Stat_t
		if err := unix.Lstat(filepath.Join(to, name), &s); err != nil {
			t.Fatal(err)
		}
		if first.Ino == 0 {
			first = s
		}
		if s.Ino != first.Ino || s.Nlink != 3 || s.Size != 3<<30 || s.Blocks*512 > 1<<20 {
			t.Errorf("%s: inode %d with %d names, %d bytes, of which %d are on the disk", name, s.Ino, s.Nlink, s.Size, s.Blocks*512)
		}
	}
	f, err := os.Open(filepath.Join(to, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 8)
	if _, err := f.ReadAt(b, 1<<30-1); err != nil || string(b) != "\x00middle\x00" {
		t.Errorf("%q, %v", b, err)
	}
	if entries, _ := os.ReadDir(to); len(entries) != 3 {
		t.Errorf("copied %v", entries)
	}
}

// The folder of the copy may lie in what is copied, as with a hostPath of the working directory.
func TestACopyIsNoPartOfItself(t *testing.T) {
	work := t.TempDir()
	to := filepath.Join(work, "ci", "artifacts")
	if err := errors.Join(os.MkdirAll(filepath.Join(work, "ci", "last"), 0o755), os.WriteFile(filepath.Join(work, "result"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(work, "ci", "last", "log"), []byte("y"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also over an earlier copy
		within, cancel := context.WithTimeout(t.Context(), 5*time.Second) // it would take hours to come to the bound
		_, err := hostArtifact(work, to).copy(within, t.TempDir())
		cancel()
		var got []string
		walked := filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
			if len(got) < 20 {
				got = append(got, strings.TrimPrefix(path, to))
			}
			return err
		})
		if err := errors.Join(err, walked); err != nil || !slices.Equal(got, []string{"", "/ci", "/ci/last", "/ci/last/log", "/result"}) {
			t.Fatalf("copied %q, %v", got, err)
		}
	}
}

func TestAFolderIsNotCopiedToItself(t *testing.T) {
	work := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Symlink(work, link), os.WriteFile(filepath.Join(work, "result"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{work, link} {
		if _, err := hostArtifact(work, to).copy(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "is the one that is copied: name another") {
			t.Errorf("said %v", err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(work, "result")); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestACopyOfDeepFoldersAndWithoutMounts(t *testing.T) {
	dir, to, other := t.TempDir(), t.TempDir(), t.TempDir()
	const depth = 3000 // far longer than any path may be
	nest := func(at int, do func(at int) error) {
		for range depth {
			if err := do(at); err != nil {
				t.Fatal(err)
			}
			next, err := unix.Openat(at, "deep", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(at)
			at = next
		}
		unix.Close(at)
	}
	open := func(dir string) int {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	nest(open(dir), func(at int) error { return unix.Mkdirat(at, "deep", 0o755) })
	mount := filepath.Join(dir, "mount")
	if err := errors.Join(os.Mkdir(mount, 0o755), os.WriteFile(filepath.Join(other, "secret"), nil, 0o600), unix.Mount(other, mount, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(mount, 0)
	left, err := hostArtifact(dir, to).copy(t.Context(), t.TempDir())
	if text := left.String(); err != nil || text != "mount" {
		t.Fatalf("left out %s, %v", text, err)
	}
	nest(open(to), func(int) error { return nil })
	for _, dir := range []string{dir, to} { // what tests remove themselves must have a short path
		if err := disk.RemoveAll(t.Context(), filepath.Join(dir, "deep")); err != nil {
			t.Error(err)
		}
	}
}

func TestACopyIsBounded(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	big, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	_, wrote := big.Write([]byte("x"))
	if err := errors.Join(wrote, big.Close()); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		c    copying
		want string
	}{
		{copying{count: maxCopied}, "it has more than 1000000 files and folders, the most that are copied: name a part of it"},
		{copying{bytes: maxCopiedBytes}, "it has more than 16 GiB, the most that is copied: name a part of it"},
	} {
		from, err := disk.OpenDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		into, err := disk.OpenDir(to, 0)
		if err != nil {
			t.Fatal(err)
		}
		trail, err := disk.NewTrail(into)
		if err != nil {
			t.Fatal(err)
		}
		row.c.ctx, row.c.to, row.c.trail = t.Context(), into, trail
		if err := disk.Walk(t.Context(), from, row.c.visit); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v", err)
		}
		from.Close()
		into.Close()
	}
	var l leftOut
	for range maxNamed + 7 {
		l.add("n")
	}
	if text := l.String(); !strings.HasSuffix(text, "n, n and 7 more") || len(text) > 100 {
		t.Errorf("%q", text)
	}
}

func TestARunCopiesItsArtifacts(t *testing.T) {
	job := made("job", "Never", "c")
	to := filepath.Join(t.TempDir(), "out")
	prepare := func(text string) func(*actor) {
		return func(a *actor) {
			one, err := ParseArtifact([]*v1.Pod{job}, "job/c:"+text)
			if err != nil {
				t.Fatal(err)
			}
			a.config.Artifacts = []*Artifact{one}
			if err := os.MkdirAll(volume.EmptyDir(a.config.Root, string(job.UID), one.volume.Name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	done := func(a *actor) { a.report(now(job, v1.PodSucceeded, states{"c": exited("1", 0)})) }
	a, code, _ := tell(t, []*v1.Pod{job}, prepare("/out="+to), done)
	if a.says("artifact job/c:/out: copied to " + to); code != 0 {
		t.Errorf("code %d", code)
	}
	if _, err := os.Stat(to); err != nil {
		t.Error(err)
	}
	a, code, _ = tell(t, []*v1.Pod{job}, prepare("/out/none="+to), done)
	if a.says("artifact job/c:/out/none: ", "no such file"); code != codeFailed {
		t.Errorf("code %d where an artifact is missing", code)
	}
}

func TestARunMayNameItsFolder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "run")
	for range 2 { // once it is there and empty
		if got, err := MakeRoot(dir); err != nil || got != dir {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeRoot(dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Error(err)
	}
	if _, err := MakeRoot(filepath.Join(parent, "none", "run")); err == nil {
		t.Error("a folder in none")
	}
}

// A copy may take long, and a person need not wait for it.
func TestACopyEndsWithASignal(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted by SIGINT"))
	root, p := t.TempDir(), artifactPod(dir)
	one, err := ParseArtifact([]*v1.Pod{p}, "job/c:/out/host="+to)
	if err != nil {
		t.Fatal(err)
	}
	one.within = "."
	if _, err := one.copy(ctx, root); err == nil || !strings.Contains(err.Error(), "SIGINT") {
		t.Errorf("copying goes on: %v", err)
	}
	s := &session{config: Config{Artifacts: []*Artifact{{pod: artifactPod("/h"), from: "job/c:/out", to: to}}}, progress: &progress{out: io.Discard}}
	if s.copyAll(ctx) {
		t.Error("an artifact that was not copied counts as copied")
	}
}

// answering is an output whose reader sends a signal as soon as it says how to kill what runs.
type answering struct {
	io.Writer
	signals chan<- os.Signal
}

func (w answering) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("a signal kills it")) {
		w.signals <- os.Interrupt
	}
	return w.Writer.Write(p)
}

// The signal need not be sent again because the first thing that it ends is a copy.
func TestASignalDuringACopyKillsWhatRuns(t *testing.T) {
	job := made("job", "Never", "c")
	a, code, took := tell(t, []*v1.Pod{job}, func(a *actor) {
		one, err := ParseArtifact([]*v1.Pod{job}, "job/c:/out="+filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		a.config.Artifacts, a.config.Err = []*Artifact{one}, answering{&a.err, a.signals}
		a.deaf, a.config.Timeout = true, time.Minute
	}, func(*actor) {})
	if code != codeTimeout || took >= 62*time.Second {
		t.Errorf("code %d after %s", code, took)
	}
	a.says("interrupted by SIGINT: kills what still runs")
}

// A container chooses the names of its files, and an error of the copy has them.
func TestAnErrorOfACopyDoesNotReachTheTerminalRaw(t *testing.T) {
	const name = "a\x1b[2J\n::error::b"
	dir, to := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, name), nil, 0o644), os.MkdirAll(filepath.Join(to, name, "x"), 0o755)); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	s := &session{config: Config{Artifacts: []*Artifact{hostArtifact(dir, to)}}, progress: &progress{out: &said}}
	if s.copyAll(t.Context()) {
		t.Error("a file replaced a folder")
	}
	if text, one := strings.CutSuffix(said.String(), "\n"); !one || strings.ContainsFunc(text, unicode.IsControl) || !strings.Contains(text, "::error::b") {
		t.Errorf("it says %q", said.String())
	}
}
