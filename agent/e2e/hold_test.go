//go:build e2e

package e2e

import (
	"fmt"
	"strings"
)

// leavesAlone: a stopped pod stays stopped over a kill of the agent and an edit, and a held
// one keeps its version; start and release end that.
func leavesAlone(w *world) {
	asks := func(args ...string) {
		w.Helper()
		if out, err := w.command(w.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			w.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	pod := func(value string) string {
		return w.manifest("web", "\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers: ["+sleeps+", env: [{name: E, value: "+value+"}]}]\n")
	}
	says := func(words string) {
		w.Helper()
		w.until("ps says "+words, func() error {
			if out, err := w.agent.Says(w.Context(), "ps"); !strings.Contains(out, words) {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return nil
		})
	}
	w.start()
	w.writeFile("web.yaml", pod("one"))
	before := w.running("web")
	asks("hold", "--reason", "audit")
	w.writeFile("web.yaml", pod("two"))
	says("audit")
	w.kill()
	w.start()
	says("audit")
	w.same(before)
	asks("release")
	w.in("web", "echo $E", "two")
	asks("stop", "web")
	says("Stopped")
	w.until("nothing of it is left", func() error {
		if n := len(w.sandboxes("web")); n > 0 {
			return fmt.Errorf("%d sandboxes", n)
		}
		return nil
	})
	w.kill()
	w.start()
	w.writeFile("web.yaml", pod("three"))
	says("Stopped")
	if n := len(w.containers("web")); n > 0 {
		w.Errorf("%d containers of a stopped pod", n)
	}
	asks("start", "web")
	w.in("web", "echo $E", "three")
}
