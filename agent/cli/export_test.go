package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"monopod/agent/cli/command"
	"monopod/manifests"
)

// exported runs the command on a root dir.
func exported(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	line := append([]string{"export", "--root", root, "--socket", filepath.Join(root, "none.sock")}, args...)
	err := execute(t.Context(), nil, &out, &out, line...)
	return out.String(), err
}

func runningPod(name string) *v1.Pod {
	p := claimant(name+"-node1", v1.PodRunning)
	p.Spec.NodeName, p.Spec.Volumes = "node1", nil
	p.Spec.Containers = []v1.Container{{Name: "main", Image: "busybox"}}
	return p
}

func TestPodsAreExportedIntoANewFolder(t *testing.T) {
	db := runningPod("db")
	db.Spec.Volumes = claimant("db", "").Spec.Volumes
	root, dir := volumeRoot(t, nil, runningPod("web"), db), filepath.Join(t.TempDir(), "new")
	out, err := exported(t, root, dir)
	if command.ExitCode(err) != command.ExitFailed || !strings.Contains(out, "written  default/web-node1 (default_web.yaml)\n") ||
		!strings.Contains(out, "left     default/db-node1: volume v: ") || !strings.Contains(out, dir+" has the manifests of 1 of 2 pods.\n") {
		t.Errorf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "default_web.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pods, problems := manifests.Decode(file, text, manifests.Options{NodeName: "node1", NameSuffix: true})
	if len(pods) != 1 || len(problems) > 0 || pods[0].UID != "u-web-node1" || pods[0].Name != "web-node1" {
		t.Errorf("%v\n%s", problems, text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read what may be secret: %v, %v", info.Mode(), err)
	}

	out, err = exported(t, root, dir)
	if err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("the folder has manifests already: %v\n%s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(root, "volumes", "default_data"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err = exported(t, root, "--inline", filepath.Join(t.TempDir(), "inline"))
	if err != nil || !strings.Contains(out, "2 of 2 pods") {
		t.Errorf("claims by their path: %v\n%s", err, out)
	}
}

func TestTheSettingsForAKubeletArePrinted(t *testing.T) {
	root := volumeRoot(t, nil, runningPod("web"))
	out, err := exported(t, root, "--managed-runtime", "--for-kubelet", t.TempDir(), filepath.Join(t.TempDir(), "new"))
	if command.ExitCode(err) != command.ExitFailed || !strings.Contains(out, "differs  the volumes of the pods are in "+root) ||
		!strings.Contains(out, "differs  the runtime is one of monopod's own") || !strings.Contains(out, "--hostname-override=node1 --root-dir="+root+"\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestExportNeedsAFolder(t *testing.T) {
	if out, err := exported(t, t.TempDir()); command.ExitCode(err) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// A kubelet starts whatever is in its folder.
func TestAStoppedPodIsNotHandedOverToRun(t *testing.T) {
	root := volumeRoot(t, nil, runningPod("web"))
	if err := os.WriteFile(filepath.Join(root, "holds.json"), []byte(`{"stopped":{"default/web-node1":{"since":"2026-01-01T00:00:00Z"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exported(t, root, filepath.Join(t.TempDir(), "new"))
	if strings.Contains(out, "written  default/web-node1") || !strings.Contains(out, "it is stopped") {
		t.Errorf("its owner stopped it, and the kubelet will start it:\n%s", out)
	}
}

// Somebody made the file after the folder was found empty.
func TestASecretIsNotWrittenIntoTheFileOfAnother(t *testing.T) {
	dir := t.TempDir()
	other, file := filepath.Join(dir, "of another"), filepath.Join(dir, "default_web.yaml")
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, file); err != nil {
		t.Fatal(err)
	}
	err := writeNew(file, []byte("hush"))
	text, _ := os.ReadFile(other)
	if err == nil || len(text) > 0 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestAFolderThatOthersMayWriteIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := exported(t, volumeRoot(t, nil, runningPod("web")), "--inline", dir)
	if err == nil {
		t.Errorf("anybody may replace a manifest, which a kubelet then runs as root:\n%s", out)
	}
}

func TestTheNodeNameIsPrintedWithoutPods(t *testing.T) {
	out, _ := exported(t, volumeRoot(t, nil), "--node-name", "node1", "--for-kubelet", t.TempDir(), filepath.Join(t.TempDir(), "new"))
	if !strings.Contains(out, "--hostname-override=node1") {
		t.Errorf("%s", out)
	}
}

// The values of Secrets are written as they are, whatever YAML has for them.
func TestAnyTextOfASecretComesThroughTheFile(t *testing.T) {
	for _, value := range []string{"\u007f", "a\u0085b", "\ufeffx", "\ufffe", "\r\n", " a ", "\n\n a\n", "a\tb\n\t", "null", "1e3", "0o17", "=", "<<", "y", "2001-01-01", "a: b #c", "\u2028", "\x01", "\U000e0001", "- ", "? x", "'\"\\", strings.Repeat("x ", 300)} {
		p := runningPod("web")
		p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "S", Value: value}}
		text, err := manifestText(p)
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		got := &v1.Pod{}
		if err := yaml.Unmarshal(text, got); err != nil || got.Spec.Containers[0].Env[0].Value != value {
			t.Errorf("%q: %v, %+v", value, err, got.Spec.Containers)
		}
	}
}
