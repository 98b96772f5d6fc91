package logs

import (
	"os"
	"strings"
	"testing"
	"time"

	"monopod/agent/cli/clitest"
	"monopod/agent/status"
)

// A running container whose log is not there is not one that wrote nothing.
func TestARunningContainerWithoutALogIsAnError(t *testing.T) {
	const lacks = "container app of pod default/web runs and has no log in "
	o := Options{Pod: "web/app", PodLogs: t.TempDir()}
	o.Socket = clitest.Agent(t, loggedPods, status.Manifests{}, status.Runtime{Up: true})
	t.Run("alone", func(t *testing.T) {
		if got := printLogs(t, o); !strings.HasPrefix(got, "--- error, usage false\n"+lacks+o.PodLogs) {
			t.Errorf("printed %s", got)
		}
	})
	t.Run("beside others", func(t *testing.T) {
		o := o
		o.Pod, o.AllContainers, o.PodLogs = "web", true, logFolder(t, loggedFiles)
		if err := os.RemoveAll(o.PodLogs + "/default_web-node1_u1/app"); err != nil {
			t.Fatal(err)
		}
		got := printLogs(t, o)
		if !strings.Contains(got, "web/proxy | GET /\n--- notes\nmonopod: "+lacks+o.PodLogs) || strings.Contains(got, "--- error") {
			t.Errorf("printed %s", got)
		}
	})
	t.Run("followed", func(t *testing.T) {
		o := o
		notes := &notes{said: make(chan string, 10)}
		o.Follow, o.Notes = true, notes
		want, _ := follow(t, o)
		select {
		case got := <-notes.said:
			if !strings.HasPrefix(got, "monopod: "+lacks+o.PodLogs) || !strings.HasSuffix(got, "; waiting for one\n") {
				t.Errorf("said %q", got)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing is said")
		}
		dir := o.PodLogs + "/default_web-node1_u1/app"
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		addLine(t, dir+"/1.log", "1 stdout here it is")
		want("here it is")
	})
}
