package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/print"
	"monopod/agent/status"
)

// formerAgent leaves what an agent reported half an hour before now, and
// returns its root.
func formerAgent(t *testing.T, pods string, m status.Manifests) (root string) {
	t.Helper()
	root = t.TempDir()
	store, err := status.Open(filepath.Join(root, "status"), discard())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range podsOf(t, pods) {
		store.SetPod(p.Namespace+"/"+p.Name, p)
	}
	store.SetManifests(m)
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(root, "status", "pods", "*"))
	for k, f := range append(files, filepath.Join(root, "status", "pods"), filepath.Join(root, "status", "manifests.json")) {
		at := now.Add(-30*time.Minute - time.Duration(k)*time.Hour)
		if err := os.Chtimes(f, at, at); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return root
}

func TestPsWithoutAnAgent(t *testing.T) {
	rows := []struct {
		name, pods string
		manifests  status.Manifests
		options    Options
	}{
		{"well", well, status.Manifests{Dir: "/m"}, Options{}},
		{"wide", well, status.Manifests{Dir: "/m"}, Options{Format: Format{Output: "wide"}, Choice: client.Choice{Names: []string{"web"}}}},
		{"yaml", well, status.Manifests{Dir: "/m"}, Options{Format: Format{Output: "yaml"}, Choice: client.Choice{Names: []string{"web"}}}},
		{"troubled", troubled, refusals(), Options{}},
		{"none", "", status.Manifests{Dir: "/m"}, Options{}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			root := formerAgent(t, r.pods, r.manifests)
			var out, errs bytes.Buffer
			o := r.options
			o.Source, o.Now, o.Err, o.Endpoint = client.Source{Socket: "/nowhere/monopod.sock", Root: root}, now, &errs, "/nowhere/runtime.sock"
			if err := Ps(t.Context(), &out, o); !errors.Is(err, client.ErrDown) {
				t.Errorf("err %v", err)
			}
			golden(t, errs.String()+out.String())
		})
	}
}

func TestOnlyAnAgentThatDoesNotRunIsReplacedByItsReports(t *testing.T) {
	root := formerAgent(t, well, status.Manifests{})
	broken := t.TempDir()
	os.MkdirAll(filepath.Join(broken, "status", "pods"), 0o700)
	os.WriteFile(filepath.Join(broken, "status", "pods", "default_web.json"), []byte("{"), 0o600)
	const nobody = "no monopod answers on /nowhere/s: is `monopod run` running? (no such file or directory)"
	for _, r := range []struct {
		name string
		client.Source
		err string
	}{
		{"without a root", client.Source{Socket: "/nowhere/s"}, nobody},
		{"with a root of nobody", client.Source{Socket: "/nowhere/s", Root: t.TempDir()}, nobody},
		{"with broken reports", client.Source{Socket: "/nowhere/s", Root: broken},
			nobody + "; what it reported is no use: " + filepath.Join(broken, "status/pods/default_web.json") + ": unexpected end of JSON input"},
		{"that is none", client.Source{Socket: "/proc/self/status/s", Root: root}, "no monopod answers on /proc/self/status/s: is `monopod run` running? (not a directory)"},
	} {
		if _, err := r.Source.Pods(t.Context()); errText(err) != r.err {
			t.Errorf("%s: %v\nwant %s", r.name, err, r.err)
		}
	}
	if k, err := (client.Source{Socket: "/nowhere/s", Root: root}).Pods(t.Context()); err != nil || len(k.Pods) == 0 || !k.Seen.Equal(now.Add(-30*time.Minute)) {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestDeadWords(t *testing.T) {
	p := named("default", "web-n1", "n1", "a", "b", "c", "d")
	for _, name := range []string{"a", "b", "c"} {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: name, ContainerID: "containerd://" + name,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}})
	}
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: "d", ContainerID: "containerd://d",
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}})
	got := print.DeadWords([]v1.Pod{p}, []*rt.Container{{Id: "a", State: rt.ContainerState_CONTAINER_RUNNING}, {Id: "b", State: rt.ContainerState_CONTAINER_EXITED}})
	want := "default/web: container b does not run any more, and no agent restarts it\ndefault/web: container c is gone, and no agent restarts it"
	if strings.Join(got, "\n") != want {
		t.Errorf("%q", got)
	}
}
