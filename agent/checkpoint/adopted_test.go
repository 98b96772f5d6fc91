package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"monopod/agent/disk"
	"monopod/agent/podspec"
)

func TestAdoptedSandboxesAreTheAgents(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	mark := map[string]string{podspec.LabelInstance: r.Instance}
	has := func(m *Marks, sandbox string, labels map[string]string, want bool) {
		t.Helper()
		if m.Has(sandbox, labels) != want {
			t.Errorf("%q with %v: %v", sandbox, labels, !want)
		}
	}
	has(r.Marks, "a", mark, true)
	has(r.Marks, "a", nil, false)
	has(&Marks{}, "a", nil, false)
	if got := r.Marks.Selector(); got[podspec.LabelInstance] != r.Instance || r.Marks.Text() != r.Instance {
		t.Errorf("nothing is adopted: %v", got)
	}
	must(t, r.Adopt([]string{"b", "a"}))
	must(t, r.Adopt([]string{"c", "a"}))
	must(t, r.DropAdopted([]string{"b"}))
	r.Close()

	r = openTestRoot(t, dir)
	has(r.Marks, "a", nil, false)
	must(t, r.ReadAdopted())
	for _, m := range []*Marks{r.Marks, MarksIn(dir)} {
		has(m, "a", nil, true)
		has(m, "b", nil, false)
		has(m, "z", mark, true)
		if ids := m.Adopted(); !slices.Equal(ids, []string{"a", "c"}) || m.Selector() != nil || m.Text() != "" {
			t.Errorf("adopted: %v, %v", ids, m.Selector())
		}
	}
	must(t, r.DropAdopted([]string{"a", "c"}))
	if Exists(r.Path(AdoptedFile)) || Exists(disk.TwinOf(r.Path(AdoptedFile))) || r.Marks.Selector() == nil {
		t.Error("an empty list stays")
	}
	must(t, r.ReadAdopted())
}

// An agent that does not know what it adopted would start that a second time.
func TestADamagedListOfAdoptedSandboxesKeepsTheAgentFromStarting(t *testing.T) {
	dir := t.TempDir()
	r := openTestRoot(t, dir)
	must(t, r.Adopt([]string{"a"}))
	one, two := r.Path(AdoptedFile), disk.TwinOf(r.Path(AdoptedFile))
	must(t, os.WriteFile(one, []byte("{"), 0o600))
	must(t, r.ReadAdopted())
	if !r.Marks.Has("a", nil) {
		t.Error("one is damaged: its twin is not read")
	}
	must(t, errors.Join(os.WriteFile(one, []byte("{"), 0o600), os.WriteFile(two, []byte("{"), 0o600)))
	if err := r.ReadAdopted(); err == nil || !strings.Contains(err.Error(), "monopod adopt --yes") {
		t.Errorf("both are damaged: %v", err)
	}
	must(t, r.Adopt([]string{"a"}))
	must(t, r.ReadAdopted())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The root dir of a kubelet becomes the agent's by adoption alone.
func TestARootDirWithPodsOfOthersIsRefused(t *testing.T) {
	file := func(path string) func(dir string) error {
		return func(dir string) error {
			path := filepath.Join(dir, path)
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600))
		}
	}
	for _, row := range []struct {
		name string
		with func(dir string) error
		want bool // refused
	}{
		{"a new one", func(string) error { return nil }, false},
		{"one without pods", func(dir string) error { return os.Mkdir(filepath.Join(dir, "pods"), 0o755) }, false},
		{"one whose folder of pods is a disk", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "pods", "lost+found"), 0o700) }, false},
		{"a kubelet's", file("pods/u/etc-hosts"), true},
		{"one whose mark was lost", file("pods/u/pod.json"), false},
		{"one with a version that is prepared", file("pods/u/next.json"), false},
		{"one whose checkpoints are damaged", file("pods/u/pod.json.corrupt"), false},
		{"one of an agent", file("instance"), false},
		{"one whose mark has a twin alone", func(dir string) error {
			return errors.Join(file("pods/u/etc-hosts")(dir), file("instance.twin")(dir))
		}, false},
		{"one that was adopted", file(AdoptedFile), false},
	} {
		dir := t.TempDir()
		if err := row.with(dir); err != nil {
			t.Fatal(err)
		}
		err := OfOthers(dir)
		if (err != nil) != row.want || err != nil && !strings.Contains(err.Error(), "monopod adopt") {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// One that is found by the twin alone is no new one.
func TestARootDirIsNewWithoutAMark(t *testing.T) {
	dir := t.TempDir()
	if !IsNew(dir) {
		t.Error("an empty one is not new")
	}
	r := openTestRoot(t, dir)
	must(t, os.Remove(r.Path("instance")))
	if IsNew(dir) || MarksIn(dir).Instance != r.Instance {
		t.Errorf("new: %v, marks %q, want %q", IsNew(dir), MarksIn(dir).Instance, r.Instance)
	}
}

// Killed before it has recorded a pod, an adoption leaves the root dir a kubelet's.
func TestAnAdoptionMarksARootDirByWhatItRecords(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pods", "u", "volumes"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := openTestRoot(t, dir)
	r.Close()
	if r.Instance != "" || OfOthers(dir) == nil {
		t.Errorf("an agent takes it, with the mark %q", r.Instance)
	}
	r = openTestRoot(t, dir)
	if err := r.Adopt([]string{"a"}); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if r = openTestRoot(t, dir); r.Instance == "" || OfOthers(dir) != nil {
		t.Errorf("what was adopted is refused, with the mark %q", r.Instance)
	}
}
