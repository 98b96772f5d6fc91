package agent

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/cli/client"
	"monopod/agent/cli/wait"
	"monopod/agent/config"
	"monopod/cri/critest"
)

// What a deploy script waits for is just what it wrote, however fast it asks.
func TestAWaitIsForTheContentThatWasWritten(t *testing.T) {
	r, root, folder, source := critest.Start(t), t.TempDir(), t.TempDir(), t.TempDir()
	r.AddImage("img:1", "img:2", "img:3")
	w := readWith(t, r, root, func(c *config.Config) { c.Manifests, c.UpdateStable = []string{folder}, time.Second })
	defer func() { w.stop() }()
	t.Chdir(source)
	waits := func(outcome string) error {
		return wait.Run(t.Context(), wait.Options{WaitOptions: client.WaitOptions{Socket: w.cfg.Socket, For: outcome,
			Timeout: time.Minute, Choice: client.Choice{Names: []string{"web.yaml"}}, Out: io.Discard, Err: io.Discard}})
	}
	runs := func() (image string) {
		c, _ := r.Container("c")
		return c.Config.Image.UserSpecifiedImage
	}
	for k := 1; k <= 3; k++ {
		text, image := manifest("web", fmt.Sprintf("img:%d", k), "terminationGracePeriodSeconds: 1"), fmt.Sprintf("img:%d", k)
		for _, dir := range []string{source, folder} {
			noErr(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(text), 0o644))
		}
		if err := waits("updated"); err != nil || runs() != image {
			t.Errorf("%v, %s runs, not %s", err, runs(), image)
		}
	}
	for _, dir := range []string{source, folder} {
		noErr(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(manifest("web", "img:1", "dnsPolicy: X")), 0o644))
	}
	if err := waits("accepted"); err == nil || !strings.HasPrefix(err.Error(), "web.yaml is rejected: "+folder+"/web.yaml:6:14: spec.dnsPolicy: ") {
		t.Errorf("a wrong manifest: %v", err)
	}
	noErr(t, os.Remove(filepath.Join(folder, "web.yaml")))
	if err := waits("removed"); err != nil || len(r.Containers())+len(r.Sandboxes()) > 0 {
		t.Errorf("%v, there are %v", err, r.Containers())
	}
}
