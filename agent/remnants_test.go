package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/manifests"
)

// A checkpoint that cannot be read keeps its pod's volumes only while a pod may be
// there to use them.
func TestAnUnusableCheckpointGoesOnceNoPodIsLeft(t *testing.T) {
	for _, row := range []struct {
		name                    string
		desired, complete, gone bool
	}{
		{"nothing is left", false, true, true},
		{"the manifests are not all known", false, false, false},
		{"a manifest gives the pod", true, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				doc := manifest("web", "img:1")
				r.want(doc)
				r.kill()
				file := r.one("pods/*/pod.json")
				noErr(r.T, os.WriteFile(file, []byte("{"), 0o600))
				data := filepath.Join(filepath.Dir(file), "volumes", "data")
				noErr(r.T, os.MkdirAll(data, 0o700))
				r.RemoveSandboxBehindBack("web-n")
				r.start()
				switch {
				case row.desired:
					r.want(doc)
				case row.complete:
					r.want()
				default:
					r.offers <- manifests.Snapshot{}
				}
				r.after(24 * time.Hour)
				if _, err := os.Stat(data); (err != nil) != row.gone {
					r.Errorf("a day later: %v", err)
				}
				said := 0
				if row.gone {
					said = 1
				}
				r.says(said, "unusable checkpoint removed")
				if got := strings.Count(strings.Join(r.happened("n"), "\n"), "UnusableCheckpoint"); got != said {
					r.Errorf("%d events: %s", got, r.happened("n"))
				}
			})
		})
	}
}
