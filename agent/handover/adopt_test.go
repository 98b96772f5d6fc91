package handover

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/update"
	"monopod/cgroups"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

// machine is one on which a kubelet left a pod default/web-node1 with the uid u.
type machine struct {
	*testing.T
	client  *cri.Client
	dir     string
	source  string // of pods that run
	adopter *Adopter
}

func newMachine(t *testing.T) *machine {
	r := critest.New(t)
	r.AddImage("busybox")
	m := &machine{T: t, client: cri.New(r.Conn()), dir: t.TempDir(), source: "file"}
	node := Node{Name: "node1", Root: filepath.Join(m.dir, "root"), PodLogs: filepath.Join(m.dir, "logs"), CgroupDriver: cgroups.Cgroupfs}
	m.adopter = &Adopter{Node: node, Hierarchies: filepath.Join(m.dir, "cgroup"), Marks: &checkpoint.Marks{Instance: "i"}, CRI: m.client,
		Pods: []*manifests.Pod{decoded(t, "metadata: {name: web}\nspec:\n"+sleeps)}}
	for _, dir := range []string{"root/pods/u", "logs/default_web-node1_u", "cgroup/cpu/kubepods/besteffort/podu"} {
		noErr(t, os.MkdirAll(filepath.Join(m.dir, dir), 0o755))
	}
	return m
}

// run has a kubelet, or with a mark a monopod, run a pod with one container.
func (m *machine) run(name, uid, mark, image string) (sandbox string) {
	m.Helper()
	labels := map[string]string{podspec.LabelPodNamespace: "default", podspec.LabelPodName: name, podspec.LabelPodUID: uid}
	if mark != "" {
		labels[podspec.LabelInstance] = mark
	}
	config := &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: name, Namespace: "default", Uid: uid}, Labels: labels,
		Annotations: map[string]string{manifests.AnnotationSource: m.source}}
	sandbox, err := m.client.RunSandbox(m.Context(), config, "")
	noErr(m.T, err)
	m.container(sandbox, 0, config, image)
	return sandbox
}

func (m *machine) container(sandbox string, attempt uint32, config *rt.PodSandboxConfig, image string) {
	m.Helper()
	spec := decoded(m.T, "metadata: {name: web}\nspec: {containers: [{name: main, image: "+image+"}]}\n").Spec.Containers[0]
	id, err := m.client.CreateContainer(m.Context(), sandbox, &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: "main", Attempt: attempt}, Labels: config.Labels,
		Image: &rt.ImageSpec{Image: "busybox"}, Annotations: map[string]string{podspec.AnnHash: podspec.ContainerHash(&spec)}}, config)
	noErr(m.T, err)
	noErr(m.T, m.client.StartContainer(m.Context(), id))
}

func (m *machine) survey() *Survey {
	m.Helper()
	s, err := m.adopter.Survey(m.Context())
	noErr(m.T, err)
	return &s
}

func TestWhatAKubeletLeftIsAdopted(t *testing.T) {
	m := newMachine(t)
	id := m.run("web-node1", "u", "", "busybox")
	m.run("stray-node1", "x", "", "busybox")
	s := m.survey()
	if len(s.Candidates) != 1 || !s.CanAdopt() || len(s.Own)+len(s.New) > 0 || !slices.Equal(s.Left, []string{"default/stray-node1"}) {
		t.Fatalf("%+v", s)
	}
	c := s.Candidates[0]
	if c.Pod.UID != "u" || c.Running != 1 || !slices.Equal(c.Sandboxes, []string{id}) || m.adopter.Pods[0].UID == "u" {
		t.Errorf("%+v", c)
	}
	root, err := checkpoint.OpenRoot(m.adopter.Node.Root)
	noErr(t, err)
	defer root.Close()
	noErr(t, s.Adopt(root, checkpoint.Boot{ID: "now"}, slog.New(slog.DiscardHandler)))
	all, err := checkpoint.AcceptedIn(root.Dir)
	if err != nil || len(all) != 1 || all[0].Uid() != "u" || all[0].Digest != m.adopter.Pods[0].Digest || !root.Marks.Has(id, nil) {
		t.Errorf("%v: %+v", err, all)
	}
	m.adopter.Marks = root.Marks
	if s := m.survey(); len(s.Own) != 1 || len(s.Candidates) > 0 {
		t.Errorf("the second time: %+v", s)
	}
}

func TestAPodOfWhichNothingRunsIsStarted(t *testing.T) {
	m := newMachine(t)
	if s := m.survey(); len(s.New) != 1 || len(s.Candidates) > 0 {
		t.Errorf("%+v", s)
	}
}

// A container that a kubelet made in the agent's sandbox has no mark.
func TestASandboxOfTheAgentWithAKubeletsContainerIsAdopted(t *testing.T) {
	m := newMachine(t)
	id := m.run("web-node1", "u", "i", "busybox")
	if s := m.survey(); len(s.Own) != 1 {
		t.Fatalf("its own: %+v", s)
	}
	m.container(id, 1, &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "web-node1", Namespace: "default", Uid: "u"},
		Labels: map[string]string{podspec.LabelPodUID: "u"}}, "busybox")
	s := m.survey()
	if len(s.Candidates) != 1 || !slices.Equal(s.Candidates[0].Sandboxes, []string{id}) {
		t.Fatalf("%+v", s)
	}
	root, err := checkpoint.OpenRoot(m.adopter.Node.Root)
	noErr(t, err)
	defer root.Close()
	known := checkpoint.NewCheckpoint(s.Candidates[0].Pod, metav1.Now())
	known.Revision = 3
	noErr(t, errors.Join(root.Save(known), s.Adopt(root, checkpoint.Boot{ID: "now"}, slog.New(slog.DiscardHandler))))
	all, err := checkpoint.AcceptedIn(root.Dir)
	if err != nil || len(all) != 1 || all[0].Revision != 3 || !root.Marks.Has(id, nil) {
		t.Errorf("%v: what was known of the pod is forgotten: %+v", err, all)
	}
}

func TestWhatDiffersKeepsPodsFromBeingAdopted(t *testing.T) {
	for _, row := range []struct {
		about  string
		change func(m *machine)
		says   string
	}{
		{"another node name", func(m *machine) { m.run("web-edge7", "u", "", "busybox") }, "--node-name edge7"},
		{"another node name, which ends as this one", func(m *machine) { m.run("web-edge-node1", "u", "", "busybox") }, "--node-name edge-node1"},
		{"names without that of the node", func(m *machine) { m.web(); m.adopter.Pods[0].Name = "web" }, "podNameSuffix"},
		{"another root dir", func(m *machine) { m.web(); m.adopter.Node.Root = "/elsewhere" }, "--root"},
		{"another folder of logs", func(m *machine) { m.web(); m.adopter.Node.PodLogs = "/elsewhere" }, "--pod-logs"},
		{"another cgroup driver", func(m *machine) { m.web(); m.adopter.Node.CgroupDriver = cgroups.Systemd }, "cgroupfs"},
		{"another cgroup root", func(m *machine) { m.web(); m.adopter.Node.CgroupRoot = "/x" }, "--cgroup-root"},
		{"another image", func(m *machine) { m.run("web-node1", "u", "", "busybox:2") }, "another image than busybox"},
		{"another uid", func(m *machine) { m.web(); m.adopter.Pods[0].UID = "pinned" }, "its manifest says pinned"},
		{"a uid that is none", func(m *machine) { m.run("web-node1", "a_b", "", "busybox") }, "metadata.uid"},
		{"two pods", func(m *machine) { m.web(); m.run("web-node1", "w", "", "busybox") }, "two pods of this name"},
		{"another monopod", func(m *machine) { m.run("web-node1", "u", "j", "busybox") }, "another root dir"},
	} {
		t.Run(row.about, func(t *testing.T) {
			m := newMachine(t)
			row.change(m)
			s := m.survey()
			if s.CanAdopt() || len(s.Candidates) != 1 || !strings.Contains(strings.Join(s.Candidates[0].Differs, "\n"), row.says) {
				t.Errorf("%+v", s.Candidates)
			}
		})
	}
}

func (m *machine) web() { m.run("web-node1", "u", "", "busybox") }

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
	noErr(m.T, s.Adopt(root, checkpoint.Boot{ID: "now"}, slog.New(slog.DiscardHandler)))
}

// The entries go with their sandboxes, and not with a second adoption.
func TestASecondAdoptionKeepsTheFirst(t *testing.T) {
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
	noErr(m.T, errors.Join(root.Save(known), s.Adopt(root, checkpoint.Boot{ID: "now"}, slog.New(slog.DiscardHandler))))
	all, err := checkpoint.AcceptedIn(root.Dir)
	if err != nil || len(all) != 1 {
		m.Fatal(err, all)
	}
	return all[0]
}

// On the way back no container restarts.
func TestTheContainerOfAKubeletIsNotRestartedForAnOldEdit(t *testing.T) {
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
func TestTheFirstEditAfterTheWayBackCounts(t *testing.T) {
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

// A container that somebody made by hand in the agent's sandbox is nothing to adopt.
func TestAContainerMadeByHandIsNotAKubelets(t *testing.T) {
	m := newMachine(t)
	id := m.run("web-node1", "u", "i", "busybox")
	m.container(id, 1, &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "web-node1", Namespace: "default", Uid: "u"}}, "busybox")
	if s := m.survey(); len(s.Own) != 1 {
		t.Errorf("its own pod is to be adopted: %+v", s)
	}
}

// A pod that had ended, and that the kubelet runs again, runs.
func TestAnEndedPodThatTheKubeletRunsAgainHasNotEnded(t *testing.T) {
	m := newMachine(t)
	m.web()
	s := m.survey()
	root, err := checkpoint.OpenRoot(m.adopter.Node.Root)
	noErr(t, err)
	defer root.Close()
	known := checkpoint.NewCheckpoint(withUID(decoded(t, "metadata: {name: web}\nspec:\n"+sleeps), "u"), metav1.Now())
	known = known.WithEnd(v1.PodStatus{Phase: v1.PodSucceeded})
	noErr(t, errors.Join(root.Save(known), s.Adopt(root, checkpoint.Boot{ID: "now"}, slog.New(slog.DiscardHandler))))
	all, err := checkpoint.AcceptedIn(root.Dir)
	noErr(t, err)
	if c := s.Candidates[0]; c.Running != 1 || len(all) != 1 || all[0].Ended() != "" {
		t.Errorf("%d of its containers run, and it is recorded as %s: the agent ends it", c.Running, all[0].Ended())
	}
}

// ended adds a pod default/job-node1 with the uid j, which comes first by its name and has ended.
func (m *machine) ended() {
	m.Helper()
	m.adopter.Pods = append([]*manifests.Pod{decoded(m.T, "metadata: {name: job}\nspec:\n"+sleeps)}, m.adopter.Pods...)
	for _, dir := range []string{"root/pods/j", "logs/default_job-node1_j"} {
		noErr(m.T, os.MkdirAll(filepath.Join(m.dir, dir), 0o755))
	}
	noErr(m.T, m.client.StopSandbox(m.Context(), m.run("job-node1", "j", "", "busybox")))
}

// An agent takes a root dir in which a pod is recorded, and waits for `monopod adopt` as long as a
// recorded pod runs in a kubelet's sandbox (see pleg). If only ended ones were, it would start the
// others a second time.
func TestAnAdoptionThatIsCutShortHasRecordedAPodThatRuns(t *testing.T) {
	m := newMachine(t)
	m.ended()
	m.web()
	s := m.survey()
	root, err := checkpoint.OpenRoot(m.adopter.Node.Root)
	noErr(t, err)
	defer root.Close()
	release, isFree := root.Claim("u") // web's cannot be recorded now
	if !isFree {
		t.Fatal("web has a checkpoint")
	}
	if err := s.Adopt(root, checkpoint.Boot{ID: "now"}, slog.New(slog.DiscardHandler)); err == nil || checkpoint.OfOthers(root.Dir) == nil {
		t.Errorf("an agent would start web a second time (%v)", err)
	}
	release()
	noErr(t, s.Adopt(root, checkpoint.Boot{ID: "now"}, slog.New(slog.DiscardHandler)))
	if all, err := checkpoint.AcceptedIn(root.Dir); err != nil || len(all) != 2 {
		t.Errorf("%v: %v", err, all)
	}
}

// The name of another pod may begin as this one's does.
func TestAPodWithALongerNameIsNotThePodOfAnotherNode(t *testing.T) {
	m := newMachine(t)
	m.adopter.Pods = append(m.adopter.Pods, decoded(t, "metadata: {name: new}\nspec:\n"+sleeps))
	m.web()
	m.run("new-db-node1", "x", "", "busybox") // of this node, as the name of web says
	m.source = "api"
	m.run("new-7d4b9c6f5-x2x4k", "y", "", "busybox")
	if s := m.survey(); !s.CanAdopt() || len(s.Candidates) != 1 || len(s.New) != 1 || len(s.Left) != 2 {
		t.Errorf("new: %v, left: %v", s.New, s.Left)
		for _, c := range s.Candidates {
			t.Errorf("%s: %q", c.Pod.Key(), c.Differs)
		}
	}
}

// A checkpoint from before the kubelet had the pods may be damaged. The agent would put it aside, and
// must not start before they are adopted.
func TestADamagedCheckpointDoesNotKeepPodsFromBeingAdopted(t *testing.T) {
	for _, row := range []struct{ about, path string }{
		{"of a pod that is adopted", "pods/u/pod.json"},
		{"of its next version", "pods/u/next.json"},
		{"of another pod", "pods/gone/pod.json"},
	} {
		t.Run(row.about, func(t *testing.T) {
			m := newMachine(t)
			m.web()
			path := filepath.Join(m.adopter.Node.Root, row.path)
			noErr(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)))
			m.adopts()
			if got := checkpoint.MarksIn(m.adopter.Node.Root).Adopted(); len(got) != 1 {
				t.Errorf("adopted are %v", got)
			}
			if all, err := checkpoint.AcceptedIn(m.adopter.Node.Root); err != nil || len(all) != 1 || all[0].Uid() != "u" {
				t.Errorf("%v: %v", err, all)
			}
		})
	}
}

// A kubelet may have made a pod while the clock was not set yet, as on a machine without a battery.
// What monopod accepted of the name before stays the former version.
func TestWhatIsAdoptedIsTheAcceptedVersion(t *testing.T) {
	m := newMachine(t)
	m.web()
	root, err := checkpoint.OpenRoot(m.adopter.Node.Root)
	noErr(t, err)
	for uid, ahead := range map[string]time.Duration{"former": time.Hour, "zz": 2 * time.Hour} {
		c := checkpoint.NewCheckpoint(withUID(m.adopter.Pods[0], uid), metav1.NewTime(time.Now().Add(ahead)))
		noErr(t, root.Save(c))
	}
	root.Close()
	m.adopts()
	all, err := checkpoint.AcceptedIn(m.adopter.Node.Root)
	if err != nil || len(all) != 1 || all[0].Uid() != "u" {
		t.Errorf("an agent replaces what runs with the uid u by %s (%v)", all[0].Uid(), err)
	}
}
