package golden

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func readMeant(t *testing.T, text string) (Meant, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "differences.md")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return ReadMeant(path)
}

func TestEachDifferenceIsMeantOrNamed(t *testing.T) {
	meant, err := readMeant(t, "Prose.\n\n    web: user  # better\n    web: idle  # nobody does\n\n## Not yet\n\n    .*: late\\..*  # to come\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Facts{"same": "1", "list": []any{"a"}, "user": "root", "late.x": true, "gone": "x", "nothing": nil, "left[a]": "1", "username": "a"}
	got := Facts{"same": "1", "list": []any{"a"}, "user": "me", "late.x": false, "new": "y", "left[a]": "2", "username": "b"}
	var s Score
	s.Add("web", want, got, []string{"left["}, meant)
	if s.Facts != 8 || s.Equal != 2 || s.Meant != 1 || s.NotYet != 1 || s.Percent() != 37.5 {
		t.Errorf("got %+v", s)
	}
	unknown := []string{
		"web: gone: the kubelet has x, we have <nil>", "web: new: the kubelet has <nil>, we have y",
		"web: nothing: the kubelet has <nil>, we have <nil>", "web: username: the kubelet has a, we have b",
	}
	if !slices.Equal(s.Unknown, unknown) {
		t.Errorf("unknown are %q", s.Unknown)
	}
	if !slices.Equal(s.Waiting, []string{"web: late.x: the kubelet has true, we have false"}) {
		t.Errorf("waiting are %q", s.Waiting)
	}
	if !slices.Equal(meant.Unused(), []string{"web: idle"}) {
		t.Errorf("unused are %q", meant.Unused())
	}
}

func TestTheStopOfAContainerThatRestartsIsChance(t *testing.T) {
	want := Facts{"status.containerStatuses[a].state": "cycling/Completed/0", "status.containerStatuses[b].state": "running/"}
	got := Facts{"stop[a].timeout": "2", "stop[b].timeout": "2"}
	maps.Copy(got, want)
	var s Score
	s.Add("web", want, got, nil, nil)
	if s.Facts != 3 || !slices.Equal(s.Unknown, []string{"web: stop[b].timeout: the kubelet has <nil>, we have 2"}) {
		t.Errorf("got %+v", s)
	}
	want["stop[a].timeout"] = "30" // a kubelet stopped it, and we do, too
	s = Score{}
	s.Add("web", want, got, nil, nil)
	if len(s.Unknown) != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestALineThatSaysNotWhyIsRefused(t *testing.T) {
	for _, text := range []string{"    web: user\n", "    user  # why\n", "    web: (  # why\n"} {
		if m, err := readMeant(t, text); err == nil {
			t.Errorf("%q is read as %+v", text, m)
		}
	}
}

func TestCgroupsAreThePodsOrTheContainers(t *testing.T) {
	id := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	r := Recorded{
		Pod: map[string]any{"metadata": map[string]any{"uid": "a-b"}},
		Calls: []Call{{"CreateContainer", map[string]any{"config": map[string]any{"metadata": map[string]any{"name": "main"}}},
			map[string]any{"container_id": id}}},
	}
	file := map[string]string{"cpu.max": "max"}
	for path, want := range map[string]string{
		"/kubepods/burstable/poda-b":               "pod",
		"/k.slice/k-burstable-poda_b.slice":        "pod",
		"/kubepods/poda-b/" + id:                   "main",
		"/k.slice/cri-containerd-" + id + ".scope": "main",
		"/kubepods/poda-b/crio-" + id:              "main",
		"/k.slice/crio-" + id + ".scope":           "main",
		"/kubepods/poda-b/crio-conmon-" + id:       "", // the process beside it
		"/kubepods/poda-bc":                        "",
		"/kubepods/poda-b/" + id[1:] + "0":         "", // the sandbox's
	} {
		r.Cgroups = map[string]map[string]string{path: file}
		who := ""
		for k := range View(r) {
			if of, ok := strings.CutPrefix(k, "cgroup["); ok {
				who, _, _ = strings.Cut(of, "]")
			}
		}
		if who != want {
			t.Errorf("%s is the cgroup of %q, want %q", path, who, want)
		}
	}
}
