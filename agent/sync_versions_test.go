package agent

import (
	"strings"
	"testing"
	"time"

	"monopod/agent/status"
	"monopod/cri/critest"
)

// fileIs returns what is reported of a file and its one pod.
func (r *rig) fileIs(k int) (status.File, status.Version) {
	r.Helper()
	f := r.store.Manifests().Files[k]
	if len(f.Versions) != 1 {
		r.Fatalf("%+v", f)
	}
	return f, f.Versions[0]
}

func TestTheReportSaysWhichHashRunsAndWhichWaits(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("web-n/c", critest.Runs().IgnoresTerm())
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		f, first := r.fileIs(0)
		if first.State != status.Accepted || first.Running == "" || first.Running != first.Hash || f.State != status.Accepted || first.Since.IsZero() {
			r.Errorf("%+v in %+v", first, f)
		}
		r.after(time.Minute)
		r.want(manifest("web", "img:2", "hostname: other"))
		r.after(2 * time.Second)
		f, second := r.fileIs(0)
		if second.State != status.Waiting || second.Running != first.Hash || second.Hash == first.Hash || second.Waiting != second.Hash ||
			second.Reason != "the version before it still runs" || !second.Since.After(first.Since) || f.State != status.Waiting {
			r.Errorf("%+v in %+v", second, f)
		}
		r.after(time.Minute)
		if _, v := r.fileIs(0); v.State != status.Accepted || v.Running != second.Hash || v.Waiting != "" || !v.Since.After(second.Since) {
			r.Errorf("%+v", v)
		}
		r.want(manifest("web", "img:2", "hostname: other", "nodeSelector: {disk: ssd}"))
		_, third := r.fileIs(0)
		if third.State != status.Waiting || third.Running != second.Hash || third.Waiting != third.Hash || !strings.Contains(third.Reason, "NodeAffinity") {
			r.Errorf("%+v", third)
		}
		r.after(time.Minute)
		r.stop()
		r.start()
		r.want(manifest("web", "img:2", "hostname: other", "nodeSelector: {disk: ssd}"))
		r.after(time.Second)
		if _, v := r.fileIs(0); v != third {
			r.Errorf("another agent says %+v, not %+v", v, third)
		}
	})
}

func TestTheReportSaysWhatAPodThatNeverRanWaitsFor(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1", "nodeSelector: {disk: ssd}"))
		r.after(time.Second)
		if f, v := r.fileIs(0); v.State != status.Waiting || v.Running != "" || v.Waiting != v.Hash || f.State != status.Waiting {
			r.Errorf("%+v in %+v", v, f)
		}
	})
}
