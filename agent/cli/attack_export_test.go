package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// "Each version that runs, or is to, is written": a kubelet starts whatever is in its folder.
func TestAttackAStoppedPodIsNotHandedOverToRun(t *testing.T) {
	root := volumeRoot(t, nil, runningPod("web"))
	if err := os.WriteFile(filepath.Join(root, "holds.json"), []byte(`{"stopped":{"default/web-node1":{"since":"2026-01-01T00:00:00Z"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exported(t, root, filepath.Join(t.TempDir(), "new"))
	if strings.Contains(out, "written  default/web-node1") && !strings.Contains(out, "stopped") {
		t.Errorf("its owner stopped it, and the kubelet will start it, without a word:\n%s", out)
	}
}

// "--inline writes their values into the manifest, which only root may read". In a folder that
// others may write, one of them makes the file first, after the folder was found empty.
func TestAttackASecretIsNotWrittenIntoTheFileOfAnother(t *testing.T) {
	dir := t.TempDir()
	other, file := filepath.Join(dir, "of another"), filepath.Join(dir, "default_web.yaml")
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, file); err != nil {
		t.Fatal(err)
	}
	p := runningPod("web")
	p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "S", Value: "hush"}}
	err := writeManifest(file, p)
	text, _ := os.ReadFile(other)
	if strings.Contains(string(text), "hush") {
		t.Errorf("%v: a file with mode 644 has the value of the Secret", err)
	}
}

func TestAttackAFolderThatOthersMayWriteIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := exported(t, volumeRoot(t, nil, runningPod("web")), "--inline", dir)
	if err == nil {
		t.Errorf("anybody may replace a manifest with the values of Secrets, which a kubelet then runs as root:\n%s", out)
	}
}

func TestAttackTheNodeNameIsPrintedWithoutPods(t *testing.T) {
	out, _ := exported(t, volumeRoot(t, nil), "--node-name", "node1", "--for-kubelet", t.TempDir(), filepath.Join(t.TempDir(), "new"))
	if !strings.Contains(out, "--hostname-override=node1") {
		t.Errorf("%s", out)
	}
}

// The values of Secrets are "written into the manifests" as they are, or the pod is refused by name.
func TestAttackAnyTextOfASecretComesThroughTheFile(t *testing.T) {
	for _, value := range []string{"\u007f", "a\u0085b", "\ufeffx", "\ufffe", "\r\n", " a ", "\n\n a\n", "a\tb\n\t", "null", "1e3", "0o17", "=", "<<", "y", "2001-01-01", "a: b #c", "\u2028", "\x01", "\U000e0001", "- ", "? x", "'\"\\", strings.Repeat("x ", 300)} {
		p := runningPod("web")
		p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "S", Value: value}}
		file := filepath.Join(t.TempDir(), "f")
		if err := writeManifest(file, p); err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		text, _ := os.ReadFile(file)
		got := &v1.Pod{}
		if err := yaml.Unmarshal(text, got); err != nil || got.Spec.Containers[0].Env[0].Value != value {
			t.Errorf("%q: %v, %+v", value, err, got.Spec.Containers)
		}
	}
}
