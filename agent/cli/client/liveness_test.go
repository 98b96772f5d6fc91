package client

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestDeadWords(t *testing.T) {
	p := named("default", "web-n1", "n1", "a", "b", "c", "d")
	for _, name := range []string{"a", "b", "c"} {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: name, ContainerID: "containerd://" + name,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}})
	}
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: "d", ContainerID: "containerd://d",
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}})
	got := deadWords([]v1.Pod{p}, []*rt.Container{{Id: "a", State: rt.ContainerState_CONTAINER_RUNNING}, {Id: "b", State: rt.ContainerState_CONTAINER_EXITED}})
	want := "default/web: container b does not run any more, and no agent restarts it\ndefault/web: container c is gone, and no agent restarts it"
	if strings.Join(got, "\n") != want {
		t.Errorf("%q", got)
	}
}
