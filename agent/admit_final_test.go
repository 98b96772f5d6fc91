package agent

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"monopod/agent/config"
	"monopod/agent/node"
	"monopod/manifests"
	"monopod/manifests/decode"
)

const (
	osMessage    = `Pod was rejected: Failed to admit pod as the OS field doesn't match node OS: spec.os.name is "windows", and this node runs linux`
	labelMessage = "Pod was rejected: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label: it is \"windows\", and this node runs linux"
)

func labelled(manifest, label string) string {
	return strings.Replace(manifest, "metadata: {", "metadata: {labels: {"+label+"}, ", 1)
}

// No change of the node makes it another OS: the pod has failed, and nothing is
// done to see whether it may run later.
func TestAPodForAnotherOSFailsAtOnce(t *testing.T) {
	rows := []struct{ name, doc, reason, message string }{
		{"by its spec", manifest("web", "img:1", "os: {name: windows}"), "PodOSNotSupported", osMessage},
		{"by its label", labelled(manifest("web", "img:1"), "kubernetes.io/os: windows"), "PodOSSelectorNodeLabelDoesNotMatch", labelMessage},
		{"though it is to start after others", after("web", "db", "img:1", "os: {name: windows}"), "PodOSNotSupported", osMessage},
		{"whatever else is wrong", manifest("web", "img:1", "os: {name: windows}", "securityContext: {sysctls: [{name: net.core.somaxconn, value: '1'}]}"), "PodOSNotSupported", osMessage},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var reads atomic.Int32
			liveOn(t, func(*node.Facts) { reads.Add(1) }, func(r *rig) {
				r.want(row.doc)
				r.wantRefused("default/web-n", row.reason)
				if got := r.status("default/web-n").Message; got != row.message {
					r.Errorf("message %q, want %q", got, row.message)
				}
				before := reads.Load()
				r.after(10 * time.Minute)
				if n := reads.Load() - before; n > 0 {
					r.Errorf("the machine was read %d times for it", n)
				}
				r.wantRefused("default/web-n", row.reason)
				r.tells("web-n", "Warning "+row.reason+": "+strings.TrimPrefix(row.message, "Pod was rejected: "))
				if log := r.log.String(); strings.Contains(log, "it waits") || strings.Count(log, "reason="+row.reason) != 1 {
					r.Errorf("it is said to wait, or not said once that it has failed:\n%s", log)
				}
			})
		})
	}
}

// A version that can never run is no reason to stop the one that runs.
func TestAVersionForAnotherOSDoesNotReplaceOneThatRuns(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		before := r.made()
		r.want(manifest("web", "img:1", "os: {name: windows}"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if r.made() != before {
			r.Errorf("%d calls more", r.made()-before)
		}
		f := r.store.Manifests().Files[0]
		if !f.Held || len(f.Problems) != 1 || "Pod was rejected: "+f.Problems[0].Message != osMessage {
			r.Errorf("file %+v", f)
		}
	})
}

// One that failed leaves others that wait alone, and runs once its manifest fits.
func TestAPodForAnotherOSRunsOnceItsManifestFits(t *testing.T) {
	live(t, func(r *rig) {
		bad, waits := manifest("bad", "img:1", "os: {name: windows}"), manifest("waits", "img:1", "nodeSelector: {disk: ssd}")
		r.want(bad, waits)
		r.wantRefused("default/bad-n", "PodOSNotSupported")
		r.wantRefused("default/waits-n", "NodeAffinity")
		r.change(func(c *config.Config) { c.NodeLabels = map[string]string{"disk": "ssd"} })
		r.after(time.Second)
		r.expect("default/waits-n/c")
		r.wantRefused("default/bad-n", "PodOSNotSupported")
		r.want(manifest("bad", "img:1", "os: {name: linux}"), waits)
		r.expect("default/bad-n/c", "default/waits-n/c")
	})
}

// Ready is who has read the folder: what is wrong in it is for a person to mend.
func TestReadyThoughAManifestIsWrong(t *testing.T) {
	live(t, func(r *rig) {
		if r.sync.read() == nil {
			r.Error("ready before anything was read")
		}
		r.offers <- manifests.Snapshot{Problems: []decode.Problem{{File: "/m", Message: "does not exist"}}}
		r.settle()
		if r.sync.read() == nil {
			r.Error("ready before the folder could be read")
		}
		wrong := decode.Problem{File: "/m/bad.yaml", Message: "did not find expected node content"}
		r.offers <- manifests.Snapshot{Read: true, Files: []*manifests.File{{Path: wrong.File, Problems: []decode.Problem{wrong}}}}
		r.settle()
		if err := r.sync.read(); err != nil {
			r.Error(err)
		}
	})
}
