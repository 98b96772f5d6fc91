package handover

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/update"
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

// The kubelet was stopped, and then the manifest edited: what runs is not what it says.
func TestAttackAnEditSinceTheKubeletEndedIsNotLost(t *testing.T) {
	m := newMachine(t)
	m.web()
	m.adopter.Pods = []*manifests.Pod{decoded(t, "metadata: {name: web}\nspec: {terminationGracePeriodSeconds: 7, containers: [{name: main, image: busybox, env: [{name: A, value: new}]}]}\n")}
	if s := m.survey(); s.CanAdopt() {
		t.Error("the container runs without the variable, and is recorded as made of the version that has it: nothing ever applies the edit")
	}
}

// handedOver is a pod whose container monopod made, and made again after edits in place; then a
// kubelet made it once more.
func (m *machine) handedOver(former string, changed map[string]int) (accepted *checkpoint.Checkpoint) {
	m.Helper()
	id := m.run("web-node1", "u", "i", "busybox")
	m.container(id, 1, &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "web-node1", Namespace: "default", Uid: "u"},
		Labels: map[string]string{podspec.LabelPodUID: "u"}}, "busybox")
	s := m.survey()
	root, err := checkpoint.OpenRoot(m.adopter.Node.Root)
	noErr(m.T, err)
	defer root.Close()
	given := withUID(decoded(m.T, "metadata: {name: web}\nspec:\n"+former), "u")
	known := checkpoint.NewCheckpoint(given, metav1.Now())
	known.Revision, known.Changed = 3, changed
	noErr(m.T, errors.Join(root.Save(known), s.Adopt(root)))
	all, err := checkpoint.AcceptedIn(root.Dir)
	if err != nil || len(all) != 1 {
		m.Fatal(err, all)
	}
	return all[0]
}

// "this is the way back": no container restarts.
func TestAttackTheContainerOfAKubeletIsNotRestartedForAnOldEdit(t *testing.T) {
	m := newMachine(t)
	c := m.handedOver(sleeps, map[string]int{"main": 3})
	i := pleg.Instance{Containers: []pleg.Container{{Name: "main", Attempt: 1, State: rt.ContainerState_CONTAINER_RUNNING}}} // without monopod.revision, as a kubelet makes it
	i.MarkAccepted(c)
	if i.Containers[0].Outdated {
		t.Errorf("a container that the kubelet made of the newest version is killed: %s", i.Containers[0].Kill.Reason)
	}
}

// Where the manifest was changed, or written with --inline, while the kubelet had the pod, adopt
// begins with revision 0, below that of the containers which monopod made before.
func TestAttackTheFirstEditAfterTheWayBackCounts(t *testing.T) {
	m := newMachine(t)
	c := m.handedOver("  terminationGracePeriodSeconds: 7\n"+sleeps, nil)
	p := decoded(t, "metadata: {name: web}\nspec: {containers: [{name: main, image: busybox, env: [{name: A, value: new}]}]}\n")
	c = c.Updated(p, update.Verdict{Kind: update.Restart, Containers: []update.Container{{Name: "main", Kind: update.Restart}}}, cgroups.Resources{}, nil)
	i := pleg.Instance{Containers: []pleg.Container{{Name: "main", Revision: 3, State: rt.ContainerState_CONTAINER_RUNNING}}} // made by monopod before export
	i.MarkAccepted(c)
	if !i.Containers[0].Outdated {
		t.Errorf("revision %d is accepted, and the container, with revision 3, is not made again: the edit is lost", c.Revision)
	}
}

// Somebody made a container by hand in the agent's sandbox: that "keeps no agent from running", and
// is nothing to adopt either.
func TestAttackAContainerMadeByHandIsNotAKubelets(t *testing.T) {
	m := newMachine(t)
	id := m.run("web-node1", "u", "i", "busybox")
	m.container(id, 1, &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "web-node1", Namespace: "default", Uid: "u"}}, "busybox")
	if s := m.survey(); len(s.Own) != 1 {
		t.Errorf("its own pod is to be adopted: %+v", s)
	}
}

// "A pod that has ended is written, too: the kubelet leaves it so as long as the runtime has its
// containers", and runs it again when it has not. Then it runs, and is taken over so.
func TestAttackAnEndedPodThatTheKubeletRunsAgainHasNotEnded(t *testing.T) {
	m := newMachine(t)
	m.web()
	s := m.survey()
	root, err := checkpoint.OpenRoot(m.adopter.Node.Root)
	noErr(t, err)
	defer root.Close()
	known := checkpoint.NewCheckpoint(withUID(decoded(t, "metadata: {name: web}\nspec:\n"+sleeps), "u"), metav1.Now())
	known = known.WithEnd(v1.PodStatus{Phase: v1.PodSucceeded})
	noErr(t, errors.Join(root.Save(known), s.Adopt(root)))
	all, err := checkpoint.AcceptedIn(root.Dir)
	noErr(t, err)
	if c := s.Candidates[0]; c.Running != 1 || len(all) != 1 || all[0].Ended() != "" {
		t.Errorf("%d of its containers run, and it is recorded as %s: the agent ends it", c.Running, all[0].Ended())
	}
}
