package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/config"
	"monopod/agent/node"
	"monopod/cri/critest"
	"monopod/manifests"
)

// restartedWith runs a test with an agent that has these runtime classes, on a
// runtime that lacks something.
func restartedWith(t *testing.T, classes map[string]string, lacks []critest.Feature, test func(*rig)) {
	t.Helper()
	live(t, func(r *rig) {
		r.stop()
		r.Lacks(lacks...)
		r.configure = func(c *config.Config) { c.RuntimeClasses = classes }
		r.start()
		test(r)
	})
}

func condition0(st v1.PodStatus) v1.PodCondition { return st.Conditions[0] }

func TestARuntimeClassStandsForAHandler(t *testing.T) {
	pod := manifest("web", "img:1", "runtimeClassName: small")
	restartedWith(t, map[string]string{"small": "crun"}, nil, func(r *rig) {
		r.want(pod)
		r.expect("default/web-n/c")
		if s := r.Sandboxes(); s[0].Handler != "crun" {
			r.Errorf("handler %q", s[0].Handler)
		}
	})
	pods, problems := manifests.Decode("/m/x.yaml", []byte(pod), manifests.Options{NodeName: "n"})
	if len(pods) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), `spec.runtimeClassName: runtime class "small" is not configured on this node`) {
		t.Errorf("%d pods, problems %v", len(pods), problems)
	}
}

// The class of a pod that was accepted may be gone from the settings since.
func TestARuntimeClassThatIsGoneIsSaidAndWaitedFor(t *testing.T) {
	restartedWith(t, map[string]string{"small": "crun"}, nil, func(r *rig) {
		pods, _ := manifests.Decode("/m/x.yaml", []byte(manifest("web", "img:1", "runtimeClassName: small")), r.options)
		r.stop()
		r.configure = nil
		r.start()
		r.offers <- manifests.Snapshot{Complete: true, Pods: pods}
		r.after(time.Minute)
		r.expect()
		c := condition0(r.status("default/web-n"))
		if !strings.Contains(c.Message, `runtime class "small" is not configured`) || strings.Count(r.log.String(), "is not configured") != 1 {
			r.Errorf("condition %+v", c)
		}
	})
}

func TestRecursiveReadOnlyIsWhatTheHandlerCan(t *testing.T) {
	for _, row := range []struct {
		name, mode string
		lacks      []critest.Feature
		waits      string // reason, "" when it runs
		recursive  bool
	}{
		{"if possible, and it is", "IfPossible", nil, "", true},
		{"if possible, and it is not", "IfPossible", []critest.Feature{critest.RecursiveReadOnly}, "", false},
		{"it must be, and is", "Enabled", nil, "", true},
		{"it must be, and cannot", "Enabled", []critest.Feature{critest.RecursiveReadOnly}, "CreateContainerConfigError", false},
		{"it must not be", "Disabled", nil, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			restartedWith(t, nil, row.lacks, func(r *rig) {
				mount := "volumeMounts: [{name: d, mountPath: /d, readOnly: true, recursiveReadOnly: " + row.mode + "}]"
				r.want(strings.Replace(manifest("web", "img:1", "volumes: [{name: d, emptyDir: {}}]"), "name: c,", "name: c, "+mount+",", 1))
				st := r.status("default/web-n").ContainerStatuses[0]
				if row.waits != "" {
					if w := st.State.Waiting; w == nil || w.Reason != row.waits {
						r.Errorf("state %+v", st.State)
					}
					return
				}
				r.expect("default/web-n/c")
				c, _ := r.Container("c")
				if got := c.Config.Mounts[0].RecursiveReadOnly; got != row.recursive {
					r.Errorf("mounted recursively: %v", got)
				}
				if got := *st.VolumeMounts[0].RecursiveReadOnly == v1.RecursiveReadOnlyEnabled; got != row.recursive {
					r.Errorf("reported as %v", *st.VolumeMounts[0].RecursiveReadOnly)
				}
			})
		})
	}
}

func TestSwapCanBeLimitedWhereV1CountsIt(t *testing.T) {
	dir := t.TempDir()
	if node.SwapController(dir, false) {
		t.Error("without the file")
	}
	if err := os.MkdirAll(filepath.Join(dir, "memory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "memory", "memory.memsw.limit_in_bytes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if !node.SwapController(dir, false) {
		t.Error("with the file")
	}
}
