package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/cli/clitest"
	"monopod/agent/status"
)

func TestOnlyAnAgentThatDoesNotRunIsReplacedByItsReports(t *testing.T) {
	root := clitest.Previous(t, "- metadata: {name: web-node1, namespace: default}", status.Manifests{})
	broken := t.TempDir()
	os.MkdirAll(filepath.Join(broken, "status", "pods"), 0o700)
	os.WriteFile(filepath.Join(broken, "status", "pods", "default_web.json"), []byte("{"), 0o600)
	noAnswer := "no monopod answers on /nowhere/s: " + WhereToLook() + " (no such file or directory)"
	for _, r := range []struct {
		name string
		Source
		err string
	}{
		{"without a root", Source{Socket: "/nowhere/s"}, noAnswer},
		{"with a root without reports", Source{Socket: "/nowhere/s", Root: t.TempDir()}, noAnswer},
		{"with broken reports", Source{Socket: "/nowhere/s", Root: broken},
			noAnswer + "; what it reported is no use: " + filepath.Join(broken, "status/pods/default_web.json") + " is cut off, or no report of a monopod"},
		{"that is none", Source{Socket: "/proc/self/status/s", Root: root}, "no monopod answers on /proc/self/status/s: " + WhereToLook() + " (not a directory)"},
	} {
		if _, err := r.Source.Pods(t.Context()); clitest.Text(err) != r.err {
			t.Errorf("%s: %v\nwant %s", r.name, err, r.err)
		}
	}
	if k, err := (Source{Socket: "/nowhere/s", Root: root}).Pods(t.Context()); err != nil || len(k.Pods) == 0 || !k.Seen.Equal(clitest.Now.Add(-30*time.Minute)) {
		t.Errorf("%+v, %v", k, err)
	}
}

// A power cut leaves an empty file of a report that was new: the others are read.
func TestAnEmptyReportIsLeftOut(t *testing.T) {
	root := clitest.Previous(t, "- metadata: {name: web-node1, namespace: default}", status.Manifests{})
	for name, text := range map[string]string{"pods/default_api-node1.json": "", "node.json": "\x00\x00", "runtime.json": "", "manifests.json": ""} {
		if err := os.WriteFile(filepath.Join(root, "status", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k, err := LastKnown(filepath.Join(root, "status"))
	if err != nil || len(k.Pods) != 1 || k.Pods[0].Name != "web-node1" {
		t.Errorf("%+v, %v", k, err)
	}
}

// The last sign of life of an agent is its heartbeat, however long nothing changed.
func TestTheAgeIsThatOfTheLastHeartbeat(t *testing.T) {
	root := clitest.Previous(t, "- metadata: {name: web-node1, namespace: default}", status.Manifests{})
	for _, row := range []struct {
		beat time.Duration // before the moment
		want string
	}{
		{0, "this is what it reported last, 30m ago"},
		{28 * time.Second, "its last sign of life was 28s ago, and this is what it reported last, which had not changed for 29m then"},
		{30*time.Minute - 10*time.Second, "its last sign of life was 29m ago, and this is what it reported last"},
	} {
		if row.beat > 0 {
			node := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": %q}]}}`, clitest.Now.Add(-row.beat).Format(time.RFC3339))
			if err := os.WriteFile(filepath.Join(root, "status", "node.json"), []byte(node), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k, err := Source{Socket: "/nowhere/s", Root: root}.Pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := k.DownWords("/s", clitest.Now); got != "the agent does not run (no process answers on /s): "+row.want {
			t.Errorf("%s: %s", row.beat, got)
		}
	}
}

// What the owner holds is held while no agent runs, too; what a hold of its own time held is
// not when that is over.
func TestHoldsAreKnownWithoutAnAgent(t *testing.T) {
	root := clitest.Previous(t, "- metadata: {name: web-node1, namespace: default}\n- metadata: {name: api-node1, namespace: default}\n- metadata: {name: old-node1, namespace: default}", status.Manifests{})
	hours := int64(time.Hour)
	record := fmt.Sprintf(`{"held": {"default/web-node1": {"reason": "audit", "since": "2026-01-02T03:04:05Z"},
		"default/old-node1": {"since": "2026-01-02T03:04:05Z", "for": %d}}, "node": {"since": %q, "for": %d}}`, hours, time.Now().Format(time.RFC3339), 2*hours)
	if err := os.WriteFile(filepath.Join(root, "holds.json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Source{Socket: "/nowhere/s", Root: root}.All(t.Context())
	if err != nil || len(k.Pods) != 3 {
		t.Fatalf("%+v, %v", k, err)
	}
	for _, p := range k.Pods {
		want := map[string]string{"web-node1": "held: audit"}[p.Name]
		if got := p.Annotations[status.AnnHeld]; got != want {
			t.Errorf("%s: %q, want %q", p.Name, got, want)
		}
	}
	if !strings.HasPrefix(k.NodeHeld, "held until ") {
		t.Errorf("the node: %q", k.NodeHeld)
	}
	if err := os.WriteFile(filepath.Join(root, "holds.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if k, err := (Source{Socket: "/nowhere/s", Root: root}).All(t.Context()); err != nil || k.NodeHeld != "" {
		t.Errorf("by a damaged record: %v, %v", k, err)
	}
}

// The runtime that an agent was connected to is known when the agent does not run.
func TestTheRuntimeIsRemembered(t *testing.T) {
	root := t.TempDir()
	store := clitest.Store(t, filepath.Join(root, "status"))
	store.SetRuntime(status.Runtime{Up: true, Endpoint: "unix:///run/mine.sock", Name: "mine"})
	store.SetRuntime(status.Runtime{Endpoint: "unix:///run/mine.sock or unix:///run/other.sock", Error: "gone"})
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k, err := (Source{Socket: "/nowhere/s", Root: root}).Pods(t.Context()); err != nil || k.Runtime != (status.Runtime{Endpoint: "unix:///run/mine.sock"}) {
		t.Errorf("%+v, %v", k, err)
	}
}
