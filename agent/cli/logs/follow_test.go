package logs

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/clitest"
	"monopod/agent/podlog"
	"monopod/agent/server"
	"monopod/agent/status"
)

// Following goes on with the pod that replaces one, and ends when it is removed.
func TestLogsFollowASuccessor(t *testing.T) {
	for _, names := range [][]string{{"app"}, {"app", "proxy"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			pod := clitest.Pods(t, loggedPods)[0]
			store := clitest.Store(t, t.TempDir(), pod)
			store.SetManifests(status.Manifests{Dir: "/m"})
			notes := &notes{said: make(chan string, 10)}
			o := Options{Pod: "web", Containers: names, Follow: true, Prefix: ptr(false), Tail: ptr(int64(1)), PodLogs: logFolder(t, loggedFiles), Notes: notes, every: 20 * time.Millisecond}
			o.Socket = clitest.Serve(t, server.Config{Store: store})
			want, done := follow(t, o)
			if len(names) > 1 {
				want("GET /")
			}
			want("404")
			leaves := pod.DeepCopy()
			leaves.DeletionTimestamp, leaves.Status.Phase = &metav1.Time{Time: clitest.Now}, v1.PodFailed
			store.SetPod("default/web-node1", leaves) // its containers have ended, but another may follow
			next := pod.DeepCopy()
			next.UID, next.DeletionTimestamp = "u7", nil
			for k, name := range names {
				dir := podlog.Dir(o.PodLogs, next, name)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				addLine(t, dir+"/0.log", fmt.Sprintf("2%d stdout the successor's", k))
			}
			store.SetPod("default/web-node1", next)
			for range names {
				want("the successor's")
			}
			if got := <-notes.said; got != "monopod: pod default/web was replaced; these are the logs of the new one, uid u7\n" {
				t.Errorf("said %q", got)
			}
			store.RemovePod("default/web-node1")
			if err := <-done; err != nil {
				t.Error(err)
			}
			if got := <-notes.said; got != "monopod: pod default/web was removed\n" {
				t.Errorf("said %q", got)
			}
		})
	}
}

// follow prints the logs in the background. want waits for a line; done has the result.
func follow(t *testing.T, o Options) (want func(...string), done <-chan error) {
	out, want := lines(t)
	ended := make(chan error, 1)
	go func() {
		err := Print(t.Context(), out, o)
		out.(io.Closer).Close() // so that no line is waited for
		ended <- err
	}()
	return want, ended
}

// notes are what is said, one after the other.
type notes struct{ said chan string }

func (n *notes) Write(b []byte) (int, error) {
	n.said <- string(b)
	return len(b), nil
}

// An agent that has just started does not report all pods yet: none of them is gone for that.
func TestLogsFollowOverAStartOfTheAgent(t *testing.T) {
	pod := clitest.Pods(t, loggedPods)[0]
	store, dir := clitest.Store(t, t.TempDir(), pod), logFolder(t, loggedFiles)
	store.SetManifests(status.Manifests{Dir: "/m"})
	listed, notes := make(chan struct{}), &notes{said: make(chan string, 10)}
	o := Options{Pod: "web", Containers: []string{"app"}, Follow: true, Tail: ptr(int64(1)), PodLogs: dir, Notes: notes, every: time.Millisecond}
	o.Socket = clitest.Serve(t, server.Config{Store: store, Watch: func(_ bool, _ []string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			select {
			case listed <- struct{}{}:
			default:
			}
		})
	}})
	want, done := follow(t, o)
	want("404")
	store.SetManifests(status.Manifests{})
	store.RemovePod("default/web-node1")
	for range 10 {
		select {
		case <-listed:
		case err := <-done:
			t.Fatalf("it has ended: %v, %s", err, <-notes.said)
		}
	}
	store.SetPod("default/web-node1", pod)
	store.SetManifests(status.Manifests{Dir: "/m"})
	addLine(t, podlog.Dir(dir, pod, "app")+"/1.log", "30 stdout after the start")
	want("after the start")
	store.RemovePod("default/web-node1")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := <-notes.said; got != "monopod: pod default/web was removed\n" {
		t.Errorf("said %q", got)
	}
}

// A user has 128 inotify instances, which the agent and other programs need, too.
func TestLogsFollowSeveralContainersWithOneInotifyInstance(t *testing.T) {
	instances := func() (n int) {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.Contains(to, "inotify") {
				n++
			}
		}
		return n
	}
	store := clitest.Store(t, t.TempDir(), clitest.Pods(t, loggedPods)[0])
	store.SetManifests(status.Manifests{Dir: "/m"})
	o := Options{Pod: "web", Containers: []string{"app", "proxy"}, Follow: true, Prefix: ptr(false), Tail: ptr(int64(1)),
		PodLogs: logFolder(t, loggedFiles), Notes: io.Discard, every: 20 * time.Millisecond}
	o.Socket = clitest.Serve(t, server.Config{Store: store})
	before := instances()
	want, done := follow(t, o)
	want("GET /")
	want("404")
	if n := instances() - before; n != 1 {
		t.Errorf("%d inotify instances, want 1", n)
	}
	store.RemovePod("default/web-node1")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := instances(); n != before {
		t.Errorf("%d inotify instances in the end, %d before", n, before)
	}
}
