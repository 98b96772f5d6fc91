package logs

import (
	"os"
	"testing"
	"time"

	"monopod/agent/cli/clitest"
	"monopod/agent/podlog"
	"monopod/agent/server"
	"monopod/agent/status"
)

// A successor that has crashed before it is noticed is followed from its first line: that says why.
func TestLogsFollowASuccessorFromItsFirstAttempt(t *testing.T) {
	pod := clitest.Pods(t, loggedPods)[0]
	store := clitest.Store(t, t.TempDir(), pod)
	store.SetManifests(status.Manifests{Dir: "/m"})
	said := &notes{said: make(chan string, 10)}
	o := Options{Pod: "web", Containers: []string{"app"}, Follow: true, Tail: ptr(int64(1)), PodLogs: logFolder(t, loggedFiles), Notes: said, every: 20 * time.Millisecond}
	o.Socket = clitest.Serve(t, server.Config{Store: store})
	want, _ := follow(t, o)
	want("404")
	next := pod.DeepCopy()
	next.UID = "u7"
	dir := podlog.Dir(o.PodLogs, next, "app")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	addLine(t, dir+"/0.log", "20 stdout bad flag")
	addLine(t, dir+"/1.log", "21 stdout bad flag again")
	store.SetPod("default/web-node1", next)
	<-said.said // it was replaced
	store.RemovePod("default/web-node1")
	want("bad flag", "bad flag again")
}

// So is a container that was waited for.
func TestLogsFollowAContainerFromItsFirstAttempt(t *testing.T) {
	pod := clitest.Pods(t, loggedPods)[2]
	store, said := clitest.Store(t, t.TempDir(), pod), &notes{said: make(chan string, 10)}
	store.SetManifests(status.Manifests{Dir: "/m"})
	o := Options{Pod: "dns", Follow: true, PodLogs: t.TempDir(), Notes: said, every: 20 * time.Millisecond}
	o.Socket = clitest.Serve(t, server.Config{Store: store})
	want, _ := follow(t, o)
	<-said.said // it waits for the start
	ready := t.TempDir() + "/dns"
	if err := os.MkdirAll(ready, 0o755); err != nil {
		t.Fatal(err)
	}
	addLine(t, ready+"/0.log", "20 stdout bad flag")
	addLine(t, ready+"/1.log", "21 stdout bad flag again")
	dir := podlog.Dir(o.PodLogs, pod, "dns")
	if err := os.MkdirAll(dir[:len(dir)-len("/dns")], 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(ready, dir); err != nil { // both at once
		t.Fatal(err)
	}
	store.RemovePod("kube-system/dns-node1")
	want("bad flag", "bad flag again")
}
