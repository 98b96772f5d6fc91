package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/manifests"
)

// mqtt is a pod of two containers: broker has a variable of the Secret s, and both its volume.
const mqtt = `apiVersion: v1
kind: Pod
metadata: {name: mqtt}
spec:
  containers:
  - name: broker
    image: reg.io/mqtt:1
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: s, key: password}}}]
    volumeMounts: [{name: v, mountPath: /v}]
  - {name: side, image: "reg.io/side:1", volumeMounts: [{name: v, mountPath: /v}]}
  volumes: [{name: v, secret: {secretName: s}}]
`

// copyStatus copies what an agent reported.
func copyStatus(t *testing.T, from, to string) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err != nil {
		t.Fatal(err)
	}
}

func TestDiffSaysWhatAnEditOfAnObjectMeans(t *testing.T) {
	options := manifests.Options{NodeName: "edge7", NameSuffix: true}
	root := t.TempDir()
	r := newDiffRig(t, options, func(c *config.Config) { c.NodeName = "edge7" })
	statusOf := r.root
	pods, problems := manifests.Decode(r.write(r.own, "mqtt.yaml", mqtt), []byte(mqtt), options)
	if len(pods) != 1 {
		t.Fatal(problems)
	}
	p := pods[0].Pod
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: c.Name, ContainerID: "fake://c", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}})
	}
	r.store.SetPod("default/mqtt-edge7", p)
	saved := manifests.NewObject(nil, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{"password": []byte("hunter2")}}, "/m/s.yaml")
	r.objects = []*manifests.Object{saved}
	disk, err := checkpoint.OpenRoot(root)
	if err == nil {
		err = disk.SaveObjects([]*manifests.Object{saved})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(disk.Close)
	secret := func(data string) string {
		return r.write(r.other, "s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {"+data+"}\n")
	}
	for _, row := range []struct{ name, data, want string }{
		{"another value", "password: hunter3", "unchanged   default/mqtt-edge7\n" +
			"    Secret \"s\": volumes follow; container broker has the former value until it restarts\n1 unchanged\n[1]\n"},
		{"a key that is gone", "user: one", "unchanged   default/mqtt-edge7\n" +
			"    Secret \"s\": volumes follow; container broker has the former value until it restarts; its next start would fail: key password is gone\n1 unchanged\n[1]\n"},
		{"the same", "password: hunter2", "no pods\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := r.run(secret(row.data))
			if !strings.HasSuffix(text, row.want) || strings.Contains(text, "hunter") {
				t.Errorf("it says\n%s", text)
			}
		})
	}
	// Where no agent runs, those that it saved count.
	if err := r.store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.socket, r.root = "/nowhere/s", root
	copyStatus(t, filepath.Join(statusOf, "status"), filepath.Join(root, "status"))
	if text := r.run(secret("password: hunter3")); !strings.Contains(text, "container broker has the former value until it restarts\n1 unchanged\n") {
		t.Errorf("without an agent it says\n%s", text)
	}
	paths, _ := filepath.Glob(filepath.Join(root, "objects", "*"))
	if err := os.WriteFile(paths[0], []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(secret("password: hunter3"))
	if now, _ := filepath.Glob(filepath.Join(root, "objects", "*")); len(now) != 1 || now[0] != paths[0] {
		t.Errorf("an unusable file of the agent's became %v", now)
	}
	if err := os.RemoveAll(filepath.Join(root, "objects")); err != nil {
		t.Fatal(err)
	}
	if text := r.run(secret("password: hunter3")); !strings.Contains(text, "no pods") || strings.Contains(text, "not compared") {
		t.Errorf("of an agent that never had any it says\n%s", text)
	}
	if err := os.WriteFile(filepath.Join(root, "objects"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := r.run(secret("password: hunter3")); !strings.Contains(text, "ConfigMaps and Secrets are not compared with those that the agent has") {
		t.Errorf("where they cannot be read it says\n%s", text)
	}
}
