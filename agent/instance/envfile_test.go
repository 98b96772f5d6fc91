package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/podspec"
	"monopod/agent/volume"
)

// What a container puts into the volume is read there or not at all.
func TestEnvFilesAreReadInTheirVolume(t *testing.T) {
	root := t.TempDir()
	f := &Files{Disk: &Disk{Root: &checkpoint.Root{Dir: root}}}
	dir := volume.EmptyDir(root, "u1", "v")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	must(os.MkdirAll(at("d/e"), 0o755))
	must(os.WriteFile(filepath.Join(root, "secret"), []byte("A='of the machine'"), 0o600))
	must(os.WriteFile(at("x"), []byte("A='1'"), 0o644))
	must(os.WriteFile(at("d/e/x"), []byte("A='2'"), 0o644))
	must(os.WriteFile(at("full"), []byte(strings.Repeat("#", mostEnvFile)), 0o644))
	must(os.WriteFile(at("large"), []byte(strings.Repeat("#", mostEnvFile+1)), 0o644))
	must(os.Symlink(filepath.Join(root, "secret"), at("link")))
	must(os.Symlink(root, at("dirlink")))
	must(unix.Mkfifo(at("pipe"), 0o644))
	for path, want := range map[string]string{"x": "A='1'", "d/e/x": "A='2'", "d//e/./x": "A='2'", "full": strings.Repeat("#", mostEnvFile),
		"large": "", "link": "", "dirlink/secret": "", "pipe": "", "none": "", "d": "", "x/y": ""} {
		c := &v1.Container{Env: []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "v", Path: path, Key: "A"}}}}}
		got := f.ReadEnvFiles(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}, c)[podspec.EnvFile{Volume: "v", Path: path}]
		if string(got.Data) != want || (got.Err == nil) != (want != "") {
			t.Errorf("%s: %.20q, %v", path, got.Data, got.Err)
		}
		if got.Err != nil && strings.Contains(got.Err.Error(), root) {
			t.Errorf("%s: the error names a path of the machine: %v", path, got.Err)
		}
	}
	if all := f.ReadEnvFiles(&v1.Pod{}, &v1.Container{Env: []v1.EnvVar{{Name: "A", Value: "1"}}}); all != nil {
		t.Errorf("without such a variable %v is read", all)
	}
}
