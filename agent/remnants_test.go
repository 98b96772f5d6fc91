package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/gc"
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

// What images the stored pods need is known without a look at the disk.
func TestTheNeedForImagesReadsNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	pod := func(uid string) *checkpoint.Checkpoint {
		p := somePod(func(p *v1.Pod) { p.UID, p.Spec.Containers[0].Image = types.UID(uid), "img:"+uid })
		return checkpoint.NewCheckpoint(&manifests.Pod{Pod: p}, metav1.Now())
	}
	root, err := checkpoint.OpenRoot(dir)
	noErr(t, err)
	noErr(t, root.Save(pod("read")))
	root.Close()

	root, err = checkpoint.OpenRoot(dir) // of the next agent
	noErr(t, err)
	defer root.Close()
	_, err = root.Checkpoints(slog.New(slog.DiscardHandler))
	noErr(t, err)
	noErr(t, root.Save(pod("saved")))
	noErr(t, root.Save(pod("removing")))
	noErr(t, root.Save(pod("removing").Removing(metav1.Now(), checkpoint.Mark{})))
	noErr(t, root.Save(pod("gone")))
	root.Forget("gone")
	noErr(t, os.RemoveAll(root.Path("pods")))

	n := &gc.ImageNeeds{Root: root, Changed: func() {}}
	n.Publish(nil)
	needs, known := n.All()
	var got []string
	for _, need := range needs {
		got = append(got, need.Image)
	}
	if !known || !slices.Equal(got, []string{"img:read", "img:saved"}) {
		t.Errorf("needs %v, known %v", got, known)
	}
}
