package once

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

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
		{Name: "out", MountPath: "/out"}, {Name: "host", MountPath: "/out/host/", SubPath: "a/b"}, {Name: "info", MountPath: "/info"}, {Name: "out", MountPath: "/x", SubPathExpr: "$(X)"}}
	return p
}

func TestAnArtifactLiesInAVolume(t *testing.T) {
	for _, row := range []struct{ text, volume, within, err string }{
		{"job/c:/out=d", "out", ".", ""},
		{"job:/out/sub/r.xml=d", "out", "sub/r.xml", ""},
		{"default/job/c:/out/host/x=d", "host", "a/b/x", ""},
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
	skipped, err := a.copy(t.Context(), root)
	if want := []string{"r/all", "r/link", "r/pipe", "r/up"}; err != nil || !slices.Equal(skipped, want) {
		t.Errorf("skipped %q: %v", skipped, err)
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
	from, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	into, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	if err := copyFile(ctx, from, "file", into, "file"); err == nil || !strings.Contains(err.Error(), "SIGINT") {
		t.Errorf("copying goes on: %v", err)
	}
	s := &session{Config: Config{Artifacts: []*Artifact{{pod: artifactPod("/h"), from: "job/c:/out", to: to}}}, say: &progress{out: io.Discard}}
	if s.copyAll(ctx) {
		t.Error("an artifact that was not copied counts as copied")
	}
}
