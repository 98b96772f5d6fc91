package client

import (
	"os"
	"path/filepath"
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
	const nobody = "no monopod answers on /nowhere/s: is `monopod run` running? (no such file or directory)"
	for _, r := range []struct {
		name string
		Source
		err string
	}{
		{"without a root", Source{Socket: "/nowhere/s"}, nobody},
		{"with a root of nobody", Source{Socket: "/nowhere/s", Root: t.TempDir()}, nobody},
		{"with broken reports", Source{Socket: "/nowhere/s", Root: broken},
			nobody + "; what it reported is no use: " + filepath.Join(broken, "status/pods/default_web.json") + ": unexpected end of JSON input"},
		{"that is none", Source{Socket: "/proc/self/status/s", Root: root}, "no monopod answers on /proc/self/status/s: is `monopod run` running? (not a directory)"},
	} {
		if _, err := r.Source.Pods(t.Context()); clitest.Text(err) != r.err {
			t.Errorf("%s: %v\nwant %s", r.name, err, r.err)
		}
	}
	if k, err := (Source{Socket: "/nowhere/s", Root: root}).Pods(t.Context()); err != nil || len(k.Pods) == 0 || !k.Seen.Equal(clitest.Now.Add(-30*time.Minute)) {
		t.Errorf("%+v, %v", k, err)
	}
}
