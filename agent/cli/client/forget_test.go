package client

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"monopod/agent/cli/clitest"
	"monopod/agent/server"
	"monopod/agent/status"
)

// forgetter is an agent with the pods web and db that forgets as it is told.
func forgetter(t *testing.T, forget func(pod string) error) (socket string) {
	t.Helper()
	store := clitest.Store(t, t.TempDir())
	for _, name := range []string{"web", "db"} {
		p := named("default", name+"-n1", "n1", "c")
		store.SetPod("default/"+p.Name, &p)
	}
	return clitest.Serve(t, server.Config{Store: store,
		Requests: []server.Request{server.Forget(func(_ context.Context, namespace, pod string) (*status.Forgotten, error) {
			return &status.Forgotten{Pod: namespace + "/" + pod}, forget(namespace + "/" + pod)
		})}})
}

func TestForget(t *testing.T) {
	wanted := &status.Refusal{Why: "pod default/web-n1 is not forgotten: its manifest is /m/web.yaml: remove that file"}
	rows := []struct {
		name   string
		names  []string
		refuse error
		asked  string
		err    string
	}{
		{"a pod", []string{"web"}, nil, "default/web-n1", ""},
		{"several", []string{"default/web", "db-n1"}, nil, "default/web-n1 default/db-n1", ""},
		{"an object", []string{"configmap/app", "web"}, nil, "default/configmap/app default/web-n1", ""},
		{"an object of a namespace", []string{"secret/kube-system/app", "cm/app"}, nil, "kube-system/secret/app default/configmap/app", ""},
		{"an object without a name", []string{"secret/"}, nil, "", `"secret/": an object is meant as in secret/NAME or secret/NAMESPACE/NAME`},
		{"one whose manifest is there", []string{"web", "db"}, wanted, "default/web-n1", wanted.Why},
		{"nothing, where a name is wrong", []string{"web", "wob"}, nil, "", `there is no pod "wob"; there is default/web`},
	}
	var printed bytes.Buffer
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var asked []string
			socket := forgetter(t, func(pod string) error {
				asked = append(asked, pod)
				return r.refuse
			})
			printed.WriteString("# " + r.name + "\n")
			err := Forget(t.Context(), Request{Socket: socket, Choice: Choice{Names: r.names}, Out: &printed})
			if clitest.Text(err) != r.err || strings.Join(asked, " ") != r.asked {
				t.Errorf("asked for %q, %v\nwant %q, %s", asked, err, r.asked, r.err)
			}
		})
	}
	clitest.Golden(t, printed.String())
}

func TestForgetWithoutAnAgent(t *testing.T) {
	err := Forget(t.Context(), Request{Socket: "/nowhere/s", Choice: Choice{Names: []string{"web"}}})
	want := "the agent does not run: no monopod answers on /nowhere/s: " + WhereToLook() + " (no such file or directory)"
	if !errors.Is(err, ErrDown) || clitest.Text(err) != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
