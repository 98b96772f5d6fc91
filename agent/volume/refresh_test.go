package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// Refresh shows what objects have now, whatever is wrong with other volumes, and touches
// none but those that show objects.
func TestRefreshUpdatesOnlyWhatShowsObjects(t *testing.T) {
	root := t.TempDir()
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "default", "web", "u1"
	gone, m, e := configMap("missing"), configMap("m"), v1.Volume{Name: "e"}
	gone.Name, m.Name = "gone", "m"
	p.Spec.Volumes = []v1.Volume{gone, m, e}
	mounts := []v1.VolumeMount{{Name: "gone", MountPath: "/g"}, {Name: "m", MountPath: "/m"}, {Name: "e", MountPath: "/e"}}
	p.Spec.Containers = []v1.Container{{Name: "c", VolumeMounts: mounts}}
	in := input()
	_, err := Refresh(t.Context(), root, p, in)
	if err == nil || err.Error() != `MountVolume.SetUp failed for volume "gone" : configmap "missing" not found` {
		t.Errorf("error %v", err)
	}
	shown := filepath.Join(root, "pods", "u1", "volumes", "kubernetes.io~configmap", "m", "a")
	if text, err := os.ReadFile(shown); err != nil || string(text) != "A" {
		t.Errorf("shows %q, %v", text, err)
	}
	in.Objects.(objects).configMaps["m"].Data["a"] = "other"
	if former, err := Refresh(t.Context(), root, p, in); err == nil || len(former) != 1 || strings.Contains(err.Error(), `"m"`) {
		t.Errorf("error %v", err)
	}
	if text, _ := os.ReadFile(shown); string(text) != "other" {
		t.Errorf("shows %q", text)
	}
	if _, err := os.Stat(filepath.Join(root, "pods", "u1", "volumes", "kubernetes.io~empty-dir")); err == nil {
		t.Error("an emptyDir was made")
	}
}
