package agent

import (
	"fmt"
	"testing"
	"time"

	"monopod/cri/critest"
)

func TestAFileIsReportedUntilItsPodsAreGone(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("web-n/c", critest.Runs().IgnoresTerm())
		r.want(manifest("web", "img:1"))
		is := func(what, want string) {
			t.Helper()
			m := r.store.Manifests()
			got := fmt.Sprint(len(m.Files))
			for _, f := range m.Leaving {
				got += fmt.Sprint(" ", f.Path, f.Pods)
			}
			if got != want {
				r.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		is("it runs", "1")
		r.want()
		r.after(time.Second)
		is("it is being stopped", "0 /m/0.yaml[default/web-n]")
		r.stop()
		r.start()
		r.want()
		r.after(time.Second)
		is("another agent stops it", "0 /m/0.yaml[default/web-n]")
		r.after(time.Minute)
		is("it is gone", "0")
		r.expect()
	})
}
