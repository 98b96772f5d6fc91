package pleg

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/podspec"
	"monopod/agent/status"
	"monopod/manifests"
)

// What a kubelet made again of a pod must not be started a second time.
func TestAnAgentWithUnmarkedPodsWaitsForAdopt(t *testing.T) {
	for _, row := range []struct {
		about    string
		sandbox  string // the mark of its label
		made     string // the mark of its container
		known    bool   // the pod has a checkpoint
		adopted  bool
		mistakes string // in the error; "": none
	}{
		{"all is marked", "i", "i", true, false, ""},
		{"a kubelet's pod that is not known here", "", "", false, false, ""},
		{"a kubelet made the sandbox", "", "", true, false, "has a sandbox"},
		{"a kubelet made the container", "i", "", true, false, "has a container"},
		{"somebody made a container by hand", "i", byHand, true, false, ""},
		{"it was adopted", "", "", true, true, ""},
		{"another monopod runs it", "j", "j", true, false, ""},
	} {
		t.Run(row.about, func(t *testing.T) {
			r, l := wired(t)
			r.AddImage("img:1")
			runMarked(t, l, "own-n", "i")
			id := runMarked(t, l, "web-n", row.sandbox)
			createMarked(t, l, id, "web-n", row.made)
			root, err := checkpoint.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			root.Marks.Instance = "i"
			if row.adopted {
				if err := root.Adopt([]string{id}); err != nil {
					t.Fatal(err)
				}
			}
			l.marks = root.Marks
			store, err := status.Open(t.TempDir(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			w := NewWatch(l.cri, root.Marks, store, slog.New(slog.DiscardHandler))
			w.Lister = l
			if row.known {
				w.Known = func() []*v1.Pod {
					p := &v1.Pod{}
					p.UID = "u"
					return []*v1.Pod{p}
				}
			}
			refused := error(nil)
			w.Refuse = func(err error) { refused = err }
			w.Sweep = func(context.Context, map[manifests.Key]*Listed) {}
			err = w.list(t.Context())
			if refused != err {
				t.Errorf("the agent ends with %v", refused)
			}
			if (err == nil) != (row.mistakes == "") || err != nil && !(strings.Contains(err.Error(), row.mistakes) && strings.Contains(err.Error(), "monopod adopt")) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Sandboxes without the mark are the agent's if they were adopted, with what is in them; others
// beside them are not.
func TestAdoptedSandboxesAreListed(t *testing.T) {
	r, l := wired(t)
	r.AddImage("img:1")
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	root.Marks.Instance, l.marks = "i", root.Marks
	own, adopted, other := runMarked(t, l, "own", "i"), runMarked(t, l, "adopted", ""), runMarked(t, l, "other", "")
	for pod, id := range map[string]string{"own": own, "adopted": adopted, "other": other} {
		createMarked(t, l, id, pod, map[string]string{"own": "i"}[pod])
	}
	if _, pods := list(t, l); len(pods) != 1 || pods[keyOf("own")] == nil {
		t.Errorf("before: %v", pods)
	}
	if err := root.Adopt([]string{adopted}); err != nil {
		t.Fatal(err)
	}
	_, pods := list(t, l)
	if p := pods[keyOf("adopted")]; len(pods) != 2 || p == nil || len(p.Sandboxes) != 1 || len(p.Containers) != 1 {
		t.Errorf("adopted: %v", pods)
	}
	if l.IsGone(t.Context(), adopted) {
		t.Error("a sandbox that is there is said to be gone")
	}
	if err := l.cri.RemoveSandbox(t.Context(), adopted); err != nil {
		t.Fatal(err)
	}
	if !l.IsGone(t.Context(), adopted) {
		t.Error("a sandbox that was removed is said to be there")
	}
	if _, pods = list(t, l); len(pods) != 1 || pods[keyOf("own")] == nil {
		t.Errorf("removed: %v", pods)
	}
	if err := root.DropAdopted([]string{adopted}); err != nil {
		t.Fatal(err)
	}
	if _, pods = list(t, l); len(pods) != 1 || pods[keyOf("own")] == nil {
		t.Errorf("after: %v", pods)
	}
}

func runMarked(t *testing.T, l *Lister, name, mark string) (id string) {
	t.Helper()
	id, err := l.cri.RunSandbox(t.Context(), &rt.PodSandboxConfig{
		Metadata: &rt.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "u"}, Labels: marked(name, mark)}, "")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func createMarked(t *testing.T, l *Lister, sandbox, pod, mark string) {
	t.Helper()
	id, err := l.cri.CreateContainer(t.Context(), sandbox, &rt.ContainerConfig{
		Metadata: &rt.ContainerMetadata{Name: "main"}, Image: &rt.ImageSpec{Image: "img:1"}, Labels: marked(pod, mark)}, &rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: pod, Namespace: "default", Uid: "u"}})
	if err == nil {
		err = l.cri.StartContainer(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// byHand is the mark of a container that has no labels at all.
const byHand = "by hand"

func marked(name, mark string) map[string]string {
	if mark == byHand {
		return nil
	}
	l := labelsOf(name)
	l[podspec.LabelInstance] = mark
	if mark == "" {
		delete(l, podspec.LabelInstance)
	}
	return l
}
