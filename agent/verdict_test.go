package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/podlog"
	"monopod/agent/print"
	"monopod/agent/status"
)

// described is what `monopod describe` says of web, without its events.
func (r *rig) described() string {
	r.Helper()
	p, _ := r.store.Pod("default/web-n")
	var text bytes.Buffer
	print.Describe(&text, p, r.store.Manifests(), nil, print.Format{Now: time.Now()})
	return text.String()
}

// What a version comes to that gives way if it does not work is reported with its file, where
// `monopod wait` finds it.
func TestTheVerdictOnAVersionIsReported(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.hasVerdict("", "")
		r.want(watched("img:2"))
		r.after(5 * time.Second)
		r.hasVerdict(status.TrialOn, "")
		if text := r.described(); !strings.Contains(text, "    On Trial:       it gives way to the version before unless it works\n") {
			t.Errorf("describe says\n%s", text)
		}
		r.after(time.Minute)
		r.hasVerdict(status.TrialPassed, "")
		if got := r.store.Manifests().UpdateStable.Duration; got != 10*time.Second {
			t.Errorf("it must be ready for %s", got)
		}
	})
}

func (r *rig) hasVerdict(trial status.Trial, output string) {
	r.Helper()
	if v := r.version(); v.Trial != trial || v.Output != output {
		r.Errorf("%s: its trial is %q, want %q; its output %q, want %q", v.State, v.Trial, trial, v.Output, output)
	}
}

func TestDescribeHasTheWholeLastOutputOfAVersionThatGaveWay(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		r.want(slow("img:2"))
		r.after(10 * time.Second)
		p, _ := r.store.Pod("default/web-n")
		dir := podlog.Dir(filepath.Join(r.dir, "logs"), p, "c")
		noErr(t, os.MkdirAll(dir, 0o750))
		var text, output, want strings.Builder
		for k := range 20 {
			line := strings.Repeat("x", 100) + fmt.Sprint(k)
			fmt.Fprintf(&text, "2000-01-01T00:00:00Z stdout F %s\n", line)
			fmt.Fprintf(&output, "c: %s\n", line)
			fmt.Fprintf(&want, "      c: %s\n", line)
		}
		noErr(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.log", p.Status.ContainerStatuses[0].RestartCount)), []byte(text.String()), 0o600))
		r.after(time.Minute)
		for _, who := range []string{"this agent", "the next one"} {
			r.hasVerdict(status.TrialFailed, strings.TrimSuffix(output.String(), "\n"))
			if text := r.described(); !strings.Contains(text, "    Last Output:\n"+want.String()) {
				t.Errorf("of %s describe says\n%s", who, text)
			}
			r.kill()
			r.start()
			r.want(slow("img:2"))
			r.after(time.Minute)
		}
	})
}
