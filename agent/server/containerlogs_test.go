package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/podlog"
)

// logged is a pod with a container in each state; those that have run have logs
// of two attempts, one line each.
func logged(t *testing.T, podLogs string) *v1.Pod {
	t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n", UID: "u"}}
	ended := func(id string) *v1.ContainerStateTerminated {
		return &v1.ContainerStateTerminated{ContainerID: id}
	}
	running := &v1.ContainerStateRunning{}
	for _, c := range []v1.ContainerStatus{
		{Name: "runs", ContainerID: "b", RestartCount: 1, State: v1.ContainerState{Running: running}, LastTerminationState: v1.ContainerState{Terminated: ended("a")}},
		{Name: "ended", ContainerID: "b", RestartCount: 1, State: v1.ContainerState{Terminated: ended("b")}},
		{Name: "crashes", ContainerID: "b", RestartCount: 1, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: v1.ContainerState{Terminated: ended("b")}},
		{Name: "hooks", ContainerID: "b", RestartCount: 1, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}, LastTerminationState: v1.ContainerState{Terminated: ended("a")}},
		{Name: "waits", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "PodInitializing"}}},
		{Name: "pulls", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ErrImagePull"}}},
		{Name: "backs-off", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
	} {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c.Name})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, c)
		for attempt := range 2 {
			if c.ContainerID != "" {
				write(t, podlog.Dir(podLogs, p, c.Name), fmt.Sprintf("%d.log", attempt), fmt.Sprintf("2026-05-04T12:00:00.5Z stdout F %s %d\n2026-05-04T12:00:01Z stderr F bye\n", c.Name, attempt))
			}
		}
	}
	p.Spec.InitContainers = []v1.Container{{Name: "init"}}
	return p
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestContainerLogs(t *testing.T) {
	podLogs := t.TempDir()
	w := serve(t, func(c *Config) { c.PodLogs = podLogs })
	w.store.SetPod("default/web-n", logged(t, podLogs))
	const invalid, undecodable = `{"message": "Invalid request."}` + "\n", `{"message": "Unable to decode query."}` + "\n"
	for _, row := range []struct {
		path string
		code int
		want string
	}{
		{"web-n/runs", 200, "runs 1\nbye\n"},
		{"web-n/runs?previous=true", 200, "runs 0\nbye\n"},
		{"web-n/runs?previous=false", 200, "runs 1\nbye\n"},
		{"web-n/ended", 200, "ended 1\nbye\n"},
		{"web-n/ended?follow=1", 200, "ended 1\nbye\n"},
		{"web-n/ended?previous=1", 400, "previous terminated container \"ended\" in pod \"web-n\" not found\n"},
		{"web-n/crashes", 200, "crashes 1\nbye\n"},
		{"web-n/crashes?previous&follow", 200, "crashes 1\nbye\n"},
		{"web-n/hooks", 200, "hooks 1\nbye\n"},
		{"web-n/hooks?previous", 200, "hooks 0\nbye\n"},
		{"web-n/waits", 400, "container \"waits\" in pod \"web-n\" is waiting to start: PodInitializing\n"},
		{"web-n/pulls?follow", 400, "container \"pulls\" in pod \"web-n\" is waiting to start: image can't be pulled\n"},
		{"web-n/backs-off", 400, "container \"backs-off\" in pod \"web-n\" is waiting to start: trying and failing to pull image\n"},
		{"web-n/init", 400, "container \"init\" in pod \"web-n\" is waiting to start: ContainerCreating\n"},
		{"web-n/none", 404, "container \"none\" not found in pod \"web-n\"\n"},
		{"web/runs", 404, "pod \"web\" does not exist\n"},
		{"web-n/runs?timestamps=true", 200, "2026-05-04T12:00:00.500000000Z runs 1\n2026-05-04T12:00:01.000000000Z bye\n"},
		{"web-n/runs?tailLines=1", 200, "bye\n"},
		{"web-n/runs?tail=1", 200, "bye\n"},
		{"web-n/runs?tail=all", 200, "runs 1\nbye\n"},
		{"web-n/runs?tailLines=0", 200, ""},
		{"web-n/runs?limitBytes=9", 200, "runs 1\nby"},
		{"web-n/runs?limitBytes=7", 200, "runs 1\n"},
		{"web-n/runs?sinceTime=2026-05-04T12:00:01Z", 200, "bye\n"},
		{"web-n/runs?sinceSeconds=99999999999", 200, "runs 1\nbye\n"},
		{"web-n/runs?sinceSeconds=1", 200, ""},
		{"web-n/runs?stream=Stderr", 200, "bye\n"},
		{"web-n/runs?stream=All", 200, "runs 1\nbye\n"},
		{"web-n/runs?stream=stderr", 422, invalid},
		{"web-n/runs?tailLines=-1", 422, invalid},
		{"web-n/runs?limitBytes=0", 422, invalid},
		{"web-n/runs?sinceSeconds=0", 422, invalid},
		{"web-n/runs?sinceSeconds=1&sinceTime=2026-05-04T12:00:01Z", 422, invalid},
		{"web-n/runs?sinceTime=noon", 400, undecodable},
		{"web-n/runs?tailLines=few", 400, undecodable},
	} {
		code, got, head := w.ask(t, true, "GET", "/containerLogs/default/"+row.path)
		if code != row.code || got != row.want || !strings.HasPrefix(head.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %q %s, want %d %q", row.path, code, got, head.Get("Content-Type"), row.code, row.want)
		}
	}
	if code, got, _ := w.ask(t, true, "HEAD", "/containerLogs/default/web-n/runs?follow=1"); code != 200 || got != "" {
		t.Errorf("HEAD: %d %q", code, got)
	}
	if code, got, _ := w.ask(t, false, "GET", "/containerLogs/default/web-n/runs"); code != 405 || got != "Debug endpoints are disabled.\n" {
		t.Errorf("over TCP: %d %q", code, got)
	}
	if err := os.RemoveAll(podLogs); err != nil {
		t.Fatal(err)
	}
	if code, got, _ := w.ask(t, true, "GET", "/containerLogs/default/web-n/runs"); code != 500 || got != "the log of container \"runs\" in pod \"web-n\" is gone\n" {
		t.Errorf("without a log: %d %q", code, got)
	}
}

// Whoever follows a log gets each line when it is written, and an end when the
// container has ended.
func TestContainerLogsFollow(t *testing.T) {
	podLogs := t.TempDir()
	w := serve(t, func(c *Config) { c.PodLogs = podLogs })
	pod := logged(t, podLogs)
	w.store.SetPod("default/web-n", pod)
	resp, err := w.local.Get("http://x/containerLogs/default/web-n/runs?follow=true&tailLines=1")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	for k, want := range []string{"bye", "1 more", "2 more"} {
		if k > 0 {
			write(t, podlog.Dir(podLogs, pod, "runs"), "1.log", "2026-05-04T12:00:02Z stdout F "+want+"\n")
		}
		if !in.Scan() || in.Text() != want {
			t.Fatalf("got %q, %v, want %q", in.Text(), in.Err(), want)
		}
	}
	over := pod.DeepCopy()
	over.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	write(t, podlog.Dir(podLogs, pod, "runs"), "1.log", "2026-05-04T12:00:02Z stdout F last\n")
	w.store.SetPod("default/web-n", over)
	if rest, err := in.Scan(), in.Err(); !rest || in.Text() != "last" || in.Scan() || err != nil {
		t.Errorf("at the end: %q, %v", in.Text(), err)
	}
}

// A server that ends does not wait for those who follow, and what they got does
// not look whole.
func TestContainerLogsEndWithTheServer(t *testing.T) {
	podLogs := t.TempDir()
	w := serve(t, func(c *Config) { c.PodLogs = podLogs })
	w.store.SetPod("default/web-n", logged(t, podLogs))
	resp, err := w.local.Get("http://x/containerLogs/default/web-n/runs?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := w.stop(); err != nil || time.Since(began) > shutdownTimeout {
		t.Errorf("stopped after %v: %v", time.Since(began), err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the answer looks whole")
	}
}
