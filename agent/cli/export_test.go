package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/command"
	"monopod/agent/handover"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/poduid"
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
	root, dir := volumeRoot(t, []string{"default_data"}, runningPod("web"), db), filepath.Join(t.TempDir(), "new")
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

// A kubelet starts each pod that is in its folder.
func TestAStoppedPodIsNotExported(t *testing.T) {
	root := volumeRoot(t, nil, runningPod("web"), runningPod("db"), runningPod("job"))
	record := func(text string) {
		if err := os.WriteFile(filepath.Join(root, "holds.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	record(`{"stopped":{"default/web-node1":{"since":"2026-01-01T00:00:00Z"},"default/job-node1":{"since":"2026-01-01T00:00:00Z","starts":true}}}`)
	out, err := exported(t, root, filepath.Join(t.TempDir(), "new"))
	if command.ExitCode(err) != command.ExitFailed || !strings.Contains(out, "left     default/web-node1: it is stopped: ") ||
		!strings.Contains(out, "written  default/db-node1") || !strings.Contains(out, "written  default/job-node1") {
		t.Errorf("one is stopped, and one is to start again: %v\n%s", err, out)
	}
	record("{")
	if out, err := exported(t, root, filepath.Join(t.TempDir(), "new")); err == nil || strings.Contains(out, "written") || !strings.Contains(err.Error(), "holds.json") {
		t.Errorf("what is stopped is not known: %v\n%s", err, out)
	}
}

// A pod that has not been let start has no version that could be written, and an edit that waits is
// none that runs: the kubelet would know neither.
func TestWhatWaitsIsNamedByAnExport(t *testing.T) {
	db := runningPod("db")
	db.Annotations = map[string]string{poduid.AnnotationHash: "2"}
	root := volumeRoot(t, nil, runningPod("web"), db)
	report := `{"dir": "/m", "files": [
		{"path": "/m/cache.yaml", "state": "waiting", "versions": [{"pod": "default/cache-node1", "state": "waiting", "reason": "waits for default/db to be ready", "hash": "1"}]},
		{"path": "/m/db.yaml", "state": "waiting", "versions": [{"pod": "default/db-node1", "state": "waiting", "reason": "its image is pulled", "hash": "2"}]},
		{"path": "/m/old.yaml", "state": "rejected", "versions": [{"pod": "default/old-node1", "state": "rejected", "reason": "wrong"}]},
		{"path": "/m/web.yaml", "state": "waiting", "versions": [{"pod": "default/web-node1", "state": "waiting", "reason": "held", "hash": "3", "running": "4"}]}]}`
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "status", "pods"), 0o755), os.WriteFile(filepath.Join(root, "status", "manifests.json"), []byte(report), 0o600)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	out, err := exported(t, root, dir)
	want := "written  default/db-node1 (default_db.yaml)\n" +
		"written  default/web-node1 (default_web.yaml): /m/web.yaml gives another version, which waits: held\n" +
		"left     default/cache-node1 of /m/cache.yaml: it has not started: waits for default/db to be ready\n" +
		dir + " has the manifests of 2 of 3 pods.\n"
	if command.ExitCode(err) != command.ExitFailed || out != want {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(root, "status", "manifests.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = exported(t, root, filepath.Join(t.TempDir(), "late"))
	if err != nil || !strings.Contains(out, "2 of 2 pods") {
		t.Errorf("a power cut left the report empty: %v\n%s", err, out)
	}
}

// A manifest may have the values of Secrets.
func TestAManifestIsNotWrittenThroughALink(t *testing.T) {
	dir := t.TempDir()
	other, file := filepath.Join(dir, "other"), filepath.Join(dir, "default_web.yaml")
	if err := errors.Join(os.WriteFile(other, nil, 0o644), os.Symlink(other, file)); err != nil {
		t.Fatal(err)
	}
	accepted := checkpoint.NewCheckpoint(&manifests.Pod{Pod: runningPod("web")}, metav1.Now())
	left, err := writeManifests(io.Discard, &handover.Exporter{}, dir, []*checkpoint.Checkpoint{accepted}, nil, nil)
	if text, failed := os.ReadFile(other); left > 0 || err != nil || failed != nil || len(text) > 0 {
		t.Errorf("the file behind the link has %q: %d, %v, %v", text, left, err, failed)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAFolderOfOtherUsersIsRefused(t *testing.T) {
	for _, row := range []struct {
		about string
		make  func(dir string) error
		says  string
	}{
		{"all users may write", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, "chmod go-w "},
		{"its group may write", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o770)) }, "chmod go-w "},
		{"another user has it", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 1234, 0)) }, "belongs to user 1234"},
		{"it is a link", func(dir string) error { return os.Symlink(filepath.Dir(dir), dir) }, "links are not followed"},
	} {
		t.Run(row.about, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "made")
			if err := row.make(dir); errors.Is(err, os.ErrPermission) {
				t.Skip("only root may give a folder away")
			} else if err != nil {
				t.Fatal(err)
			}
			if out, err := exported(t, volumeRoot(t, nil, runningPod("web")), dir); err == nil || !strings.Contains(err.Error(), row.says) || out != "" {
				t.Errorf("%v\n%s", err, out)
			}
		})
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

func TestTheNodeNameForAKubeletIsPrintedWithoutPods(t *testing.T) {
	out, _ := exported(t, volumeRoot(t, nil), "--node-name", "Edge7", "--for-kubelet", t.TempDir(), filepath.Join(t.TempDir(), "new"))
	if !strings.Contains(out, "--hostname-override=edge7 ") {
		t.Errorf("%s", out)
	}
	if strings.Contains(out, "cgroupDriver: ") || !strings.Contains(out, "cgroupDriver is not known") {
		t.Errorf("no pod tells the driver:\n%s", out)
	}
}

// Without --runtime-endpoint an agent has the runtime that is there, as CRI-O; a kubelet has
// containerd's socket unless it is told another.
func TestTheRuntimeForAKubeletIsTheOneThatAnswers(t *testing.T) {
	r := critest.Start(t)
	none := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	for _, row := range []struct {
		about     string
		endpoints []string
		want      string
	}{
		{"the second answers", []string{none, r.Endpoint()}, r.Endpoint()},
		{"the first answers", []string{r.Endpoint(), none}, r.Endpoint()},
		{"none answers", []string{none, none}, ""},
		{"one was named, and does not answer", []string{none}, none},
	} {
		if got := runtimeOf(t.Context(), row.endpoints); got != row.want {
			t.Errorf("%s: %q, want %q", row.about, got, row.want)
		}
	}
}

func TestExportNeedsAFolder(t *testing.T) {
	if out, err := exported(t, t.TempDir()); command.ExitCode(err) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}
