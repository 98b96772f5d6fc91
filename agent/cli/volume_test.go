package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/cli/clitest"
	"monopod/agent/cli/command"
	"monopod/agent/volume"
	"monopod/manifests"
)

// volumeRoot is the root dir of an agent that runs, with the pods' checkpoints and the
// directories of volumes.
func volumeRoot(t *testing.T, volumes []string, pods ...*v1.Pod) string {
	t.Helper()
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(root.Close)
	for _, p := range pods {
		if err := root.Save(checkpoint.NewCheckpoint(&manifests.Pod{Pod: p}, metav1.Now())); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range volumes {
		if err := os.MkdirAll(root.Path("volumes", name, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root.Dir
}

// claimant is a pod that uses the claim data.
func claimant(name string, phase v1.PodPhase) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("u-" + name)}, Status: v1.PodStatus{Phase: phase}}
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return p
}

func runVolume(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := execute(t.Context(), nil, &out, io.Discard, append([]string{"volume"}, args...)...)
	return out.String(), err
}

func TestVolumesAreListed(t *testing.T) {
	root := volumeRoot(t, []string{"default_data", "other_data"}, claimant("web", v1.PodRunning), claimant("job", v1.PodSucceeded))
	out, err := runVolume(t, "ls", "--root", root)
	want := "VOLUME         USED BY       PATH\n" +
		"default/data   default/web   " + root + "/volumes/default_data\n" +
		"other/data     -             " + root + "/volumes/other_data\n"
	if err != nil || out != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
	out, err = runVolume(t, "ls", "--root", root, "-o", "json")
	if err != nil || !strings.Contains(out, `"usedBy": [`) || !strings.Contains(out, `"name": "other/data"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := runVolume(t, "ls", "--root", volumeRoot(t, nil)); err != nil || out != "There are no volumes.\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAVolumeIsRemovedUnlessAPodUsesIt(t *testing.T) {
	root := volumeRoot(t, []string{"default_data", "other_data"}, claimant("web", v1.PodRunning), claimant("job", v1.PodFailed))
	out, err := runVolume(t, "rm", "--root", root, "default/data", "other/data")
	if got := clitest.Text(err); got != "volume default/data: pod default/web uses it: remove the pod's manifest first" {
		t.Error(got)
	}
	if out != "volume other/data is removed\n" {
		t.Errorf("said %q", out)
	}
	left, _ := filepath.Glob(filepath.Join(root, "volumes", "*"))
	if len(left) != 1 || filepath.Base(left[0]) != "default_data" {
		t.Errorf("left %v", left)
	}
	if err := os.RemoveAll(filepath.Join(root, "pods", "u-web")); err != nil {
		t.Fatal(err)
	}
	if _, err := runVolume(t, "rm", "--root", root, "default/data"); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "volumes", "*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// The version that an update on trial may go back to uses its volumes, too.
func TestAVolumeOfAFormerVersionOnTrialStays(t *testing.T) {
	root := volumeRoot(t, []string{"default_data"})
	former := claimant("web", v1.PodRunning)
	err := (&checkpoint.Root{Dir: root}).SaveUpdate(manifests.KeyOf(former), &checkpoint.Update{Former: former})
	if err != nil {
		t.Fatal(err)
	}
	_, err = runVolume(t, "rm", "--root", root, "default/data")
	if got := clitest.Text(err); got != "volume default/data: pod default/web uses it: remove the pod's manifest first" {
		t.Error(got)
	}
}

// What was made and is missing is said, and made by hand alone.
func TestAMissingVolumeIsListedAndMade(t *testing.T) {
	root := volumeRoot(t, []string{"default_data"}, claimant("web", v1.PodRunning))
	if err := errors.Join(volume.RecordClaims(root), os.RemoveAll(filepath.Join(root, "volumes"))); err != nil {
		t.Fatal(err)
	}
	dir := root + "/volumes/default_data"
	list := func(more string) string {
		return "VOLUME         USED BY       PATH\ndefault/data   default/web   " + dir + more + "\n"
	}
	for _, step := range []struct{ args, want, says string }{
		{"ls --root " + root, list(" (missing: mount its disk, or make it again)"), ""},
		{"make --root " + root, "", "which volume? As in `monopod volume make default/data`"},
		{"make --root " + root + "/none default/data", "", "root dir: open " + root + "/none/pods: no such file or directory; name the agent's with --root"},
		{"make --root " + root + " default/data", "volume default/data is made: " + dir + "\n", ""},
		{"make --root " + root + " default/data", "", "volume default/data is there already: " + dir},
		{"ls --root " + root, list(""), ""},
	} {
		out, err := runVolume(t, strings.Fields(step.args)...)
		if out != step.want || clitest.Text(err) != step.says {
			t.Errorf("%s: %v\n%s", step.args, err, out)
		}
	}
}

func TestVolumesAreNotRemovedInDoubt(t *testing.T) {
	root := volumeRoot(t, []string{"default_data"})
	if err := os.MkdirAll(filepath.Join(root, "pods", "u1"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "pods", "u1", "pod.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "x")
	for args, want := range map[string]string{
		"rm --root " + root + " default/data":       "volume default/data: " + root + "/pods/u1/pod.json is damaged: it is not valid JSON from byte 1 on",
		"rm --root " + root + " default/x":          "there is no volume default/x",
		"rm --root " + root + " data":               "which volume is data? Write NAMESPACE/NAME, as in `monopod volume rm default/data`",
		"rm --root " + root:                         "which volume? As in `monopod volume rm default/data`",
		"ls --root " + root + " x":                  "volume ls takes no arguments, got \"x\"",
		"--root " + root:                            "volume what? ls lists the volumes, inspect NAMESPACE/NAME tells of one, make NAMESPACE/NAME makes one, rm NAMESPACE/NAME removes one",
		"mv --root " + root:                         "volume mv: there are only ls, inspect, make and rm",
		"ls --root " + nowhere:                      "root dir: open " + nowhere + "/pods: no such file or directory; name the agent's with --root",
		"rm --root " + root + " default/../../pods": "which volume is default/../../pods? Write NAMESPACE/NAME, as in `monopod volume rm default/data`",
	} {
		_, err := runVolume(t, strings.Fields(args)...)
		if got := clitest.Text(err); got != want {
			t.Errorf("%s: %s", args, got)
		}
		usage := strings.Contains(want, "?") || strings.Contains(want, "only ls, inspect, make and rm") || strings.Contains(want, "no arguments")
		if got := command.ExitCode(err); got != 1 && !usage || usage && got != command.ExitUsage {
			t.Errorf("%s: exit code %d", args, got)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "volumes", "default_data", "sub")); err != nil {
		t.Error(err)
	}
}

// Of a volume it is told where it is, what it takes, since when it is there, and who uses it.
func TestAVolumeIsInspected(t *testing.T) {
	root := volumeRoot(t, []string{"default_data"}, claimant("web", v1.PodRunning))
	dir := root + "/volumes/default_data"
	if err := errors.Join(os.WriteFile(dir+"/one", make([]byte, 1<<20), 0o600), os.Link(dir+"/one", dir+"/two")); err != nil {
		t.Fatal(err)
	}
	made := regexp.MustCompile("(?m)^Made: .*\n")
	size := regexp.MustCompile(`(?m)^Size Used: {10}1\.[01] MB$`) // folders take some, too
	out, err := runVolume(t, "inspect", "default/data", "--root", root)
	got := size.ReplaceAllString(made.ReplaceAllString(out, ""), "Size Used:          1 MB")
	want := "Name:               default/data\nPath:               " + dir + "\nSize Used:          1 MB\nUsed By:            default/web\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, out)
	}
	if !made.MatchString(out) && !volume.MadeAt(root, types.NamespacedName{Namespace: "default", Name: "data"}).IsZero() {
		t.Errorf("it is not said when it was made:\n%s", out)
	}
	ls, _ := runVolume(t, "ls", "--root", root)
	if list, err := runVolume(t, "list", "--root", root); err != nil || list != ls {
		t.Errorf("list: %v\n%s", err, list)
	}
	if err := errors.Join(volume.RecordClaims(root), os.RemoveAll(root+"/volumes")); err != nil {
		t.Fatal(err)
	}
	out, err = runVolume(t, "inspect", "default/data", "default/none", "--root", root)
	want = "Name:               default/data\nPath:               " + dir + "\nMissing:            yes: mount its disk, or make it again, empty: monopod volume make default/data --root " + root + "\nUsed By:            default/web\n"
	if out != want || clitest.Text(err) != "there is no volume default/none; `monopod volume ls` lists them" {
		t.Errorf("%v\n%s", err, out)
	}
}
