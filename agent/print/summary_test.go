package print

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A sidecar is stopped when the work of its pod is done, and whether it hears the signal says nothing.
func TestAnEndedPodIsNotCalledByTheEndOfItsSidecar(t *testing.T) {
	done := func(name string) v1.ContainerStatus {
		s := ended(name, 0)
		s.State.Terminated.Reason = "Completed"
		return s
	}
	for _, row := range []struct {
		name          string
		phase         v1.PodPhase
		init          []v1.ContainerStatus
		main          v1.ContainerStatus
		word          string
		health        Health
		isToldOfAnEnd bool
	}{
		{"work that is well", v1.PodSucceeded, []v1.ContainerStatus{done("init"), ended("side", 137)}, done("main"), "Completed", Over, false},
		{"work that failed", v1.PodFailed, []v1.ContainerStatus{done("init"), ended("side", 137)}, ended("main", 3), "Error", Trouble, true},
		{"an init container that failed", v1.PodFailed, []v1.ContainerStatus{ended("init", 3), ended("side", 137)}, v1.ContainerStatus{Name: "main"}, "Init:Error", Trouble, true},
		{"a pod that goes on", v1.PodRunning, []v1.ContainerStatus{done("init"), ended("side", 137)}, running("main"), "Init:Error", Trouble, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := &v1.Pod{}
			p.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "side", RestartPolicy: new(v1.ContainerRestartPolicyAlways)}}
			p.Spec.Containers = []v1.Container{{Name: "main"}}
			p.Status = v1.PodStatus{Phase: row.phase, InitContainerStatuses: row.init, ContainerStatuses: []v1.ContainerStatus{row.main}}
			s, words := Summarize(p, time.Now()), WordsOf(p, time.Now())
			if s.Word != row.word || s.Health != row.health || len(words) > 0 != row.isToldOfAnEnd {
				t.Errorf("it is %+v, and %+v", s, words)
			}
		})
	}
}
