package volume

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// The agent runs under a umask that lets others see nothing. Pods see what a kubelet shows them.
func TestTheUmaskChangesNoModes(t *testing.T) {
	modes := func(umask int) map[string]fs.FileMode {
		defer syscall.Umask(syscall.Umask(umask))
		root := testRoot(t)
		host := func(name, path string, kind v1.HostPathType) v1.Volume {
			return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(root, path), Type: &kind}}}
		}
		p := testPod(emptyDir("disk"), inMemory("memory", "1Mi"), configMap("m"), host("dir", "host/dir", v1.HostPathDirectoryOrCreate), host("file", "file", v1.HostPathFileOrCreate))
		claim := claimVolume("data", false)
		claim.Name = "claim"
		p.Spec.Volumes = append(p.Spec.Volumes, claim)
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: "claim"})
		m, err := SetUp(t.Context(), root, p, input())
		must(t, err)
		_, err = SubPaths(root, "u1", []SubPathMount{{Volume: "disk", Container: "main", Mount: m["disk"], Path: "sub/sub"}})
		must(t, err)
		_, err = TerminationLog(root, "u1", "main")
		must(t, err)
		out := map[string]fs.FileMode{}
		must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == root {
				return err
			}
			i, err := d.Info()
			if dir := filepath.Dir(path); filepath.Base(dir) == "main" { // a random name
				path = filepath.Join(dir, "log")
			}
			if !strings.Contains(path, "/..2") { // and one of the time
				rel, _ := filepath.Rel(root, path)
				out[rel] = i.Mode()
			}
			return err
		}))
		return out
	}
	usual, private := modes(0o022), modes(0o077)
	for path, mode := range usual {
		if private[path] != mode {
			t.Errorf("%s: %v, and with a umask of 0077 %v", path, mode, private[path])
		}
	}
	const plugin = "pods/u1/volumes/kubernetes.io~"
	for path, want := range map[string]fs.FileMode{plugin + "empty-dir/disk": fs.ModeDir | 0o777, plugin + "empty-dir/memory": fs.ModeDir | fs.ModeSticky | 0o777, "volumes/default_data": fs.ModeDir | 0o777,
		"pods/u1": fs.ModeDir | 0o750, "host/dir": fs.ModeDir | 0o755, "host": fs.ModeDir | 0o755, "file": 0o644, "pods/u1/containers/main/log": 0o666, plugin + "empty-dir/disk/sub/sub": fs.ModeDir | 0o777} {
		if private[path] != want {
			t.Errorf("%s: %v, want %v", path, private[path], want)
		}
	}
	if len(usual) != len(private) || len(usual) < 20 {
		t.Errorf("%d and %d files", len(usual), len(private))
	}
}
