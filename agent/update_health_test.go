package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/config"
	"monopod/agent/status"
	"monopod/cri/critest"
)

// watched is a manifest whose update is watched for 30 s.
func watched(image string, extra ...string) string {
	return healthy("30s", manifest("web", image, extra...))
}

// healthy is a manifest with the annotation about the health of its update.
func healthy(within, doc string) string {
	return strings.Replace(doc, "metadata: {", fmt.Sprintf("metadata: {annotations: {monopod.update-health: %s}, ", within), 1)
}

// runsID checks that the pod's only container runs an image by its id.
func (r *rig) runsID(image string) {
	r.Helper()
	r.expect("default/web-n/c")
	if got := r.imageID(); got != image {
		r.Errorf("%s runs, want %s", got, image)
	}
}

func (r *rig) imageID() string {
	r.Helper()
	return r.status("default/web-n").ContainerStatuses[0].ImageID
}

// rollbacks returns what the events say of updates that were rolled back.
func (r *rig) rollbacks() (texts []string) {
	r.events.List("").Each(func(e *v1.Event) bool {
		if e.Reason == "UpdateRolledBack" {
			for range max(e.Count, 1) {
				texts = append(texts, e.Message)
			}
		}
		return true
	})
	return texts
}

// isBack checks that the former version runs with its image, and that this was told once.
func (r *rig) isBack(image, why string) {
	r.Helper()
	r.runsID(image)
	if words := r.words("default/web-n"); !strings.Contains(words, "update rolled back: ") || !strings.Contains(words, why) {
		r.Errorf("it says %q, not that the update was rolled back: %s", words, why)
	}
	if texts := r.rollbacks(); len(texts) != 1 || !strings.Contains(texts[0], why) {
		r.Errorf("events %q", texts)
	}
	if n := r.samples()["monopod_rollbacks_total"]; n != 1 {
		r.Errorf("%v rollbacks are counted", n)
	}
	f := r.store.Manifests().Files
	if len(f) != 1 || !f[0].Held || len(f[0].Problems) != 1 || !strings.Contains(f[0].Problems[0].Message, why) {
		r.Errorf("files %+v", f)
	}
}

func (r *rig) updateRecords() int {
	files, _ := filepath.Glob(filepath.Join(r.dir, "updates", "*.json"))
	return len(files)
}

// stays checks that this image runs and nothing was rolled back.
func (r *rig) stays(image string) {
	r.Helper()
	r.runsImage(image)
	if texts := r.rollbacks(); len(texts) > 0 {
		r.Errorf("events %q", texts)
	}
}

func TestACrashLoopBringsTheFormerVersionBack(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.ExitsAfter(200*time.Millisecond, 1))
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.isBack(former, "img:2")
		r.after(time.Hour)
		r.isBack(former, "ended with exit code 1")
	})
}

func TestAVersionThatIsNeverReadyIsGivenItsTime(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1)))
		r.after(29 * time.Second)
		r.stays("img:2")
		r.after(35 * time.Second)
		r.isBack(former, "it was not ready within 30s: container c is not ready")
	})
}

func TestAVersionThatDoesNotStayReadyGoes(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r)
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1)))
		r.after(5 * time.Second)
		r.stays("img:2")
		a.fail("readiness")
		r.after(40 * time.Second)
		r.isBack(former, "it was ready, and did not stay so for 10s")
	})
}

func TestAVersionThatRestartsOnceItWasReadyGoes(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.ExitsAfter(5*time.Second, 0))
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.isBack(former, "it was ready, and")
	})
}

func TestAVersionThatStaysReadyIsTheOneToGoBackTo(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:3", critest.Exits(1))
		r.AddImage("img:3")
		r.want(manifest("web", "img:1"))
		r.want(watched("img:2"))
		r.after(5 * time.Second)
		if n := r.updateRecords(); n != 1 {
			r.Errorf("%d records while it is watched", n)
		}
		r.after(10 * time.Second)
		r.stays("img:2")
		if n := r.updateRecords(); n != 0 {
			r.Errorf("%d records after that", n)
		}
		second := r.imageID()
		r.Exit("c", 1) // which is no longer the update's fault
		r.after(time.Minute)
		r.stays("img:2")
		r.want(watched("img:3"))
		r.after(time.Minute)
		r.isBack(second, "img:3")
	})
}

func TestAMovedTagDoesNotBringTheBadImageBack(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.MoveTag("img:1")
		r.Program("img:1", critest.Exits(1))
		r.ForgetCalls()
		r.want(watched("img:1", "hostname: other"))
		r.after(time.Minute)
		r.isBack(former, "exit code 1")
		r.after(10 * time.Minute)
		r.Exit("c", 1)
		r.after(10 * time.Minute)
		r.runsID(former)
	})
}

func TestAVersionBetweenTwoIsNotOneToGoBackTo(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.AddImage("img:3")
		bad := func(image string) string {
			return healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", image, 1))
		}
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(bad("img:2"))
		r.after(20 * time.Second)
		r.want(bad("img:3"))
		r.after(20 * time.Second)
		r.stays("img:3")
		r.after(time.Minute)
		r.isBack(former, "img:3")
	})
}

func TestWithoutTheAnnotationNothingIsRolledBack(t *testing.T) {
	for _, doc := range []string{manifest("web", "img:2"), healthy("0s", manifest("web", "img:2"))} {
		liveWith(t, func(r *rig) {
			r.configure = func(c *config.Config) {
				if doc != manifest("web", "img:2") {
					c.UpdateHealth = time.Second
				}
			}
		}, func(r *rig) {
			r.Program("img:2", critest.Exits(1))
			r.want(manifest("web", "img:1"))
			r.want(doc)
			r.after(10 * time.Minute)
			if got := r.status("default/web-n").ContainerStatuses[0].Image; !strings.HasSuffix(got, "img:2") || len(r.rollbacks()) > 0 || r.updateRecords() > 0 {
				r.Errorf("%s is there, %q", got, r.rollbacks())
			}
		})
	}
}

func TestTheSettingCountsForAllPods(t *testing.T) {
	liveWith(t, func(r *rig) {
		r.configure = func(c *config.Config) { c.UpdateHealth, c.UpdateStable = 5*time.Second, time.Second }
	}, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1))
		r.after(40 * time.Second)
		r.isBack(former, "it was not ready within 5s")
	})
}

func TestAJobThatSucceedsIsHealthy(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.ExitsAfter(3*time.Second, 0))
		r.want(manifest("web", "img:1"))
		r.want(watched("img:2", "restartPolicy: OnFailure"))
		r.after(4 * time.Second) // sooner than it could have stayed ready
		if st := r.status("default/web-n"); st.Phase != v1.PodSucceeded || len(r.rollbacks()) > 0 || r.updateRecords() > 0 {
			r.Errorf("phase %s, %q, %d records", st.Phase, r.rollbacks(), r.updateRecords())
		}
	})
}

func TestAJobThatFailsIsRolledBack(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.ExitsAfter(3*time.Second, 7))
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(watched("img:2", "restartPolicy: Never"))
		r.after(time.Minute)
		r.isBack(former, "container c ended with exit code 7")
	})
}

// With stop-first nothing runs while images are pulled: that is not the version's fault.
func TestPullsDoNotCountAgainstAVersion(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("img:9", 5*time.Minute, nil)
		r.want(manifest("web", "img:1"))
		r.want(strings.Replace(watched("img:9"), "annotations: {", "annotations: {monopod.update: stop-first, ", 1))
		r.after(10 * time.Minute)
		r.stays("img:9")
	})
}

// Nor are those that fail, and those of one container while another one runs already.
func TestPullsThatFailDoNotCountAgainstAVersion(t *testing.T) {
	for name, image := range map[string]string{"of the only container": "img:9", "beside another container": "img:2"} {
		for _, isSlow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, slow: %v", name, isSlow), func(t *testing.T) {
				live(t, func(r *rig) {
					if isSlow {
						r.OnPull("img:9", 5*time.Minute, nil)
					} else {
						r.offline("img:9")
					}
					r.want(manifest("web", "img:1"))
					next := strings.Replace(watched(image, "hostname: other"), "annotations: {", "annotations: {monopod.update: stop-first, ", 1)
					r.want(strings.Replace(next, "containers: [", `containers: [{name: d, image: "img:9"}, `, 1))
					r.after(10 * time.Minute)
					r.online("img:9")
					r.after(10 * time.Minute)
					if texts := r.rollbacks(); len(texts) != 0 || !r.status("default/web-n").ContainerStatuses[0].Ready {
						t.Errorf("events %q, status %+v", texts, r.status("default/web-n").ContainerStatuses)
					}
				})
			})
		}
	}
}

func TestAnAbsentRuntimeDoesNotCountAgainstAVersion(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		r.want(healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1)))
		r.after(10 * time.Second)
		r.Stop()
		r.after(10 * time.Minute)
		r.Resume()
		r.after(5 * time.Second)
		a.fail()
		r.after(time.Minute)
		r.stays("img:2")
	})
}

// Without its record an agent that dies could not go back.
func TestAVersionWaitsUntilItsRecordIsSaved(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		file := filepath.Join(r.dir, "updates")
		noErr(r.T, os.WriteFile(file, nil, 0o600))
		r.stopsNothing(func() {
			r.want(watched("img:2"))
			r.after(time.Minute)
		})
		f := r.store.Manifests().Files
		if len(f) != 1 || !f[0].Held || len(f[0].Problems) != 1 || !strings.Contains(f[0].Problems[0].Message, "what it may have to go back to is not on disk: record of the update") {
			r.Errorf("files %+v", f)
		}
		noErr(r.T, os.Remove(file))
		r.after(time.Minute)
		r.replaced("img:2")
	})
}

// The disk does not take that a version is rolled back, and the owner reverts the manifest.
func TestARevertWhileTheRollBackCannotBeSavedIsTaken(t *testing.T) {
	for name, reverted := range map[string]string{"watched": watched("img:1"), "not watched": manifest("web", "img:1")} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("img:2", critest.Exits(1))
				r.want(manifest("web", "img:1"))
				r.want(watched("img:2"))
				r.after(2 * time.Second)
				release := pin(t, r.one("updates/*.json"))
				r.after(time.Minute) // it fails, which cannot be written down
				r.want(reverted)
				r.after(time.Minute)
				release()
				r.after(time.Minute)
				r.expect("default/web-n/c")
				if strings.Contains(r.log.String(), "panic") {
					t.Errorf("the log:\n%s", r.log)
				}
			})
		})
	}
}

// A report that panics is the loss of that report alone.
func TestAPanicInAReportDoesNotEndTheLoop(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.after(time.Second)
		for range 3 {
			r.sync.faults.ofLoop("report the manifests", func() { panic("poison") })
		}
		if n := strings.Count(r.log.String(), "stack="); n != 1 {
			t.Errorf("said %d times", n)
		}
		if n := r.samples()["monopod_pod_panics_total"]; n != 3 {
			t.Errorf("%v panics are counted", n)
		}
		r.want(manifest("web", "img:2"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
	})
}

// A version that was rolled back waits for nothing: its file says that it is rejected, and why.
func TestAVersionThatWasRolledBackIsRejected(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.ExitsAfter(200*time.Millisecond, 1))
		r.want(manifest("web", "img:1"))
		r.want(watched("img:2"))
		r.after(time.Minute)
		for _, restarted := range []bool{false, true} {
			if restarted {
				r.stop()
				r.start()
				r.want(watched("img:2"))
				r.after(time.Minute)
			}
			if _, v := r.fileIs(0); v.State != status.Rejected || !strings.HasPrefix(v.Reason, "update rolled back: ") || v.Running == v.Hash || v.Running == "" {
				t.Errorf("after a restart %v: %+v", restarted, v)
			}
		}
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		if _, v := r.fileIs(0); v.State != status.Accepted || v.Running != v.Hash {
			t.Errorf("the manifest that is put back: %+v", v)
		}
	})
}

// Of two that exchange their ports, each stopped for the other one: none waits for the trial of the
// other, or stays away because that one fails.
func TestPodsThatExchangeTheirPortsOnTrialBothRun(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		doc := func(name, image, port string) string {
			return healthy("30s", strings.Replace(manifest(name, image), "image:", "ports: [{containerPort: 1, hostPort: "+port+"}], image:", 1))
		}
		r.want(doc("a", "img:1", "80"), doc("b", "img:1", "81"))
		r.after(time.Minute)
		r.want(doc("a", "img:2", "81"), doc("b", "img:1", "80"))
		r.after(4 * time.Second)
		if !slices.Contains(r.Running(), "default/b-n/c") {
			r.Errorf("while the other one is on trial, b says %q", r.words("default/b-n"))
		}
		r.after(10 * time.Minute)
		if !slices.Contains(r.Running(), "default/b-n/c") {
			r.Errorf("once the other one has failed, b says %q", r.words("default/b-n"))
		}
		r.Logf("a says %q", r.words("default/a-n"))
	})
}
