package handover

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"monopod/agent/checkpoint"
	"monopod/cgroups"
	"monopod/manifests"
)

// adopts does what `monopod adopt --yes` does from Survey on, see agent/cli/adopt.go.
func (m *machine) adopts() {
	m.Helper()
	m.adopter.Marks = checkpoint.MarksIn(m.adopter.Node.Root)
	s := m.survey()
	if !s.CanAdopt() {
		m.Fatalf("cannot adopt: %+v", s.Candidates)
	}
	root, err := checkpoint.OpenRoot(m.adopter.Node.Root)
	noErr(m.T, err)
	defer root.Close()
	noErr(m.T, s.Adopt(root))
}

// "The entries go with their sandboxes", and not with a second adoption.
func TestAttackASecondAdoptionKeepsTheFirst(t *testing.T) {
	m := newMachine(t)
	first := m.run("web-node1", "u", "", "busybox")
	m.adopts()
	m.adopter.Pods = append(m.adopter.Pods, decoded(t, "metadata: {name: db}\nspec:\n"+sleeps))
	for _, dir := range []string{"root/pods/d", "logs/default_db-node1_d", "cgroup/cpu/kubepods/besteffort/podd"} {
		noErr(t, os.MkdirAll(filepath.Join(m.dir, dir), 0o755))
	}
	second := m.run("db-node1", "d", "", "busybox")
	m.adopts()
	want := []string{first, second}
	slices.Sort(want)
	if got := checkpoint.MarksIn(m.adopter.Node.Root).Adopted(); !slices.Equal(got, want) {
		t.Errorf("adopted are %v, want %v", got, want)
	}
}

// A kubelet with another cgroup root than the agent's is said: "its cgroup is not below /".
func TestAttackACgroupBelowAnotherRootDiffers(t *testing.T) {
	m := newMachine(t)
	noErr(t, os.RemoveAll(filepath.Join(m.dir, "cgroup")))
	noErr(t, os.MkdirAll(filepath.Join(m.dir, "cgroup/pods/kubepods/besteffort/podu"), 0o755)) // cgroupRoot: /pods
	noErr(t, os.WriteFile(filepath.Join(m.dir, "cgroup/cgroup.controllers"), []byte("cpu memory pids\n"), 0o644))
	m.web()
	if s := m.survey(); s.CanAdopt() {
		t.Error("the agent makes another cgroup below /kubepods for the pod, and this is not said")
	}
}

// The kubelet was stopped, and then the manifest edited: what runs is not what it says.
func TestAttackAnEditSinceTheKubeletEndedIsNotLost(t *testing.T) {
	m := newMachine(t)
	m.web()
	m.adopter.Pods = []*manifests.Pod{decoded(t, "metadata: {name: web}\nspec: {terminationGracePeriodSeconds: 7, containers: [{name: main, image: busybox, env: [{name: A, value: new}]}]}\n")}
	if s := m.survey(); s.CanAdopt() {
		t.Error("the container runs without the variable, and is recorded as made of the version that has it: nothing ever applies the edit")
	}
}

func TestAttackSettingsOfOddPathsAreYAML(t *testing.T) {
	n := &Node{Name: "node1", Root: t.TempDir(), PodLogs: "/var/log/pods", CgroupDriver: cgroups.Systemd, Proc: "/proc"}
	for _, dir := range []string{"/m #1", "/m: x", "/m\nseccompDefault: true"} {
		noErr(t, os.WriteFile(filepath.Join(n.Root, "config.yaml"), []byte(n.KubeletSettings(dir)), 0o600))
		differs, err := n.CheckKubelet(n.Root, dir)
		if all := strings.Join(differs, "\n"); err != nil || strings.Contains(all, "staticPodPath") {
			t.Errorf("%q: the settings that export prints are refused by export: %v %s", dir, err, all)
		}
	}
}
