package diff

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/client"
	"monopod/agent/update"
	"monopod/manifests"
)

// broker is default/broker-n with an image, which has a variable of the Secret s.
func broker(t *testing.T, image string) *manifests.Pod {
	t.Helper()
	pods, problems := manifests.Decode("/m/broker.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: broker}\nspec:\n"+
		"  containers:\n  - {name: c, image: '"+image+"', env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: password}}}]}\n"+
		"  - {name: other, image: i, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: password}}}]}\n"), manifests.Options{NodeName: "n", NameSuffix: true})
	if len(pods) != 1 {
		t.Fatal(problems)
	}
	return pods[0]
}

func secret(key, value string) []*manifests.Object {
	return []*manifests.Object{manifests.NewObject(nil, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{key: []byte(value)}}, "/m/s.yaml")}
}

func TestWhatEditsOfObjectsMeanToPods(t *testing.T) {
	v1st, v2nd := broker(t, "img:1"), broker(t, "img:2")
	runs := func(p *v1.Pod) {
		p.Status.ContainerStatuses = []v1.ContainerStatus{
			{Name: "c", ContainerID: "fake://c", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
			{Name: "other", ContainerID: "fake://o", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}}}
	}
	was := secret("password", "hunter2")
	for _, row := range []struct {
		name    string
		has     *manifests.Pod
		phase   v1.PodPhase
		desired []*manifests.Pod
		given   []*manifests.Object
		policy  string
		want    string
		changes int
	}{
		{"the same content", v1st, v1.PodRunning, []*manifests.Pod{v1st}, secret("password", "hunter2"), "", "unchanged", 0},
		{"another value", v1st, v1.PodRunning, []*manifests.Pod{v1st}, secret("password", "hunter3"), "",
			`unchanged: Secret "s": container c has the former value until it restarts`, 1},
		{"another value, and the pod is not among the files", v1st, v1.PodRunning, nil, secret("password", "hunter3"), "",
			`unchanged: Secret "s": container c has the former value until it restarts`, 1},
		{"a key that is gone", v1st, v1.PodRunning, []*manifests.Pod{v1st}, secret("user", "one"), "",
			`unchanged: Secret "s": container c has the former value until it restarts; its next start would fail: key password is gone`, 1},
		{"a container that restarts for another version has the new value", v1st, v1.PodRunning, []*manifests.Pod{v2nd}, secret("password", "hunter3"), "", "restarted", 1},
		{"and so has a pod that is replaced", v1st, v1.PodRunning, []*manifests.Pod{v2nd}, secret("password", "hunter3"), update.PolicyReplace, "replaced", 1},
		{"a pod that has ended", v1st, v1.PodSucceeded, []*manifests.Pod{v1st}, secret("password", "hunter3"), "", "unchanged", 0},
		{"a pod that is new", nil, "", []*manifests.Pod{v1st}, secret("password", "hunter3"), "", "new", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := &client.Known{}
			if row.has != nil {
				k.Pods = []v1.Pod{has(row.has, row.phase, runs)}
			}
			r := Of(k, row.desired, nil, false, row.policy, Gate{})
			r.AddObjects(k, row.desired, was, row.given)
			if len(r.Pods) != 1 {
				t.Fatalf("%+v", r.Pods)
			}
			got := strings.Join(append([]string{string(r.Pods[0].Action)}, r.Pods[0].Objects...), ": ")
			if got != row.want || r.Changes != row.changes {
				t.Errorf("got  %s, %d changes\nwant %s, %d", got, r.Changes, row.want, row.changes)
			}
		})
	}
}
