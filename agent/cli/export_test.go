package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

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
