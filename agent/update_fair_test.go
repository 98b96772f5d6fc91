package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"monopod/agent/podlog"
	"monopod/cri/critest"
	"monopod/manifests"
)

// slow is a watched version that is ready only once its probe answers.
func slow(image string) string {
	return healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", image, 1))
}

// What the owner or the agent does to a pod, and what the node lacks, says nothing about its version.
func TestOnlyWhatAVersionDidCountsAgainstIt(t *testing.T) {
	configured := func(image string) string {
		doc := refers("web", "envFrom: [{configMapRef: {name: app}}]")
		return healthy("30s", strings.NewReplacer("img:1", image, "metadata: {", `metadata: {annotations: {monopod.restart-on-config-change: "true"}, `).Replace(doc))
	}
	merged := func(image string) string { // one annotations map
		return strings.Replace(configured(image), `annotations: {monopod.update-health: 30s}, annotations: {`, `annotations: {monopod.update-health: 30s, `, 1)
	}
	for name, does := range map[string]func(*rig){
		"a stop while it gets ready": func(r *rig) {
			a := answers(r, "readiness")
			r.want(manifest("web", "img:1"))
			r.want(slow("img:2"))
			r.after(5 * time.Second)
			r.stops("web")
			r.after(10 * time.Minute)
			a.fail()
			r.starts("web")
		},
		"a stop once it is ready": func(r *rig) {
			r.want(manifest("web", "img:1"))
			r.want(watched("img:2"))
			r.after(5 * time.Second)
			r.stops("web")
			r.after(10 * time.Minute)
			r.starts("web")
		},
		"a restart of a container by request": func(r *rig) {
			r.want(manifest("web", "img:1"))
			r.want(watched("img:2"))
			r.after(3 * time.Second)
			r.mustRestart("web-n", "c")
		},
		"a restart of the pod by request": func(r *rig) {
			r.want(manifest("web", "img:1"))
			r.want(watched("img:2"))
			r.after(3 * time.Second)
			r.mustRestart("web-n", "")
		},
		"a restart for its ConfigMap": func(r *rig) {
			r.want(merged("img:1"), object("ConfigMap", "app", "a: one"))
			r.want(merged("img:2"), object("ConfigMap", "app", "a: one"))
			r.after(3 * time.Second)
			r.want(merged("img:2"), object("ConfigMap", "app", "a: two"))
		},
		"a shutdown that is cancelled": func(r *rig) {
			r.want(manifest("web", "img:1"))
			r.want(watched("img:2"))
			r.after(3 * time.Second)
			r.down(true)
			r.after(5 * time.Second)
			r.down(false)
		},
		"no network for pods": func(r *rig) {
			r.want(manifest("web", "img:1"))
			r.after(time.Minute)
			networkDown(r)
			r.after(time.Minute)
			r.want(watched("img:2", "hostname: other"))
			r.after(10 * time.Minute)
			networkUp(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			goesDown(t, func(r *rig) {
				does(r)
				r.after(time.Minute)
				r.stays("img:2")
				if n := r.updateRecords(); n != 0 {
					r.Errorf("%d records are left", n)
				}
			})
		})
	}
}

// ... and after that what it does itself counts again.
func TestATrialGoesOnAfterWhatDoesNotCount(t *testing.T) {
	for name, does := range map[string]func(*rig){
		"a restart by request": func(r *rig) { r.mustRestart("web-n", "c") },
		"a stop": func(r *rig) {
			r.stops("web")
			r.after(time.Hour)
			r.starts("web")
		},
		"a shutdown that is cancelled": func(r *rig) {
			r.down(true)
			r.after(10 * time.Second)
			r.down(false)
		},
		"a shutdown that is cancelled before the pod's turn": func(r *rig) {
			r.down(true)
			r.after(3 * time.Second)
			r.down(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			goesDown(t, func(r *rig) {
				answers(r, "readiness")
				r.Program("slow-n/c", critest.Runs().OnTerm(12*time.Second, 0))
				r.want(critical(manifest("web", "img:1")), manifest("slow", "img:1"))
				former := r.status("default/web-n").ContainerStatuses[0].ImageID
				r.want(critical(slow("img:2")), manifest("slow", "img:1"))
				r.after(5 * time.Second)
				does(r)
				r.after(25 * time.Second)
				if texts := r.rollbacks(); len(texts) > 0 {
					r.Errorf("its time is not over: %q", texts)
				}
				r.after(time.Hour)
				if got := r.imageID(); got != former || len(r.rollbacks()) != 1 {
					r.Errorf("it is not rolled back: %s runs, %q", got, r.rollbacks())
				}
			})
		})
	}
}

// A fix is not rolled back to what never worked, however long it takes to get ready.
func TestAVersionThatNeverWorkedIsNotOneToGoBackTo(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		live(t, func(r *rig) {
			r.Program("img:1", critest.ExitsAfter(time.Second, 1))
			a := answers(r, "readiness")
			r.want(manifest("web", "img:1")) // it crashes from the start on
			r.after(time.Hour)
			if restarted {
				r.kill()
				r.start()
			}
			r.want(slow("img:2"))
			r.after(40 * time.Second)
			a.fail()
			r.after(10 * time.Minute)
			r.stays("img:2")
		})
	}
}

// ... but to one that worked, though it crashes by now.
func TestAVersionThatWorkedOnceIsOneToGoBackTo(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.after(time.Minute)
		r.Program("img:1", critest.ExitsAfter(time.Second, 1))
		r.Exit("c", 1)
		r.after(time.Hour)
		r.want(slow("img:2"))
		r.after(10 * time.Minute)
		if got := r.imageID(); got != former || len(r.rollbacks()) != 1 {
			r.Errorf("%s is there, %q", got, r.rollbacks())
		}
	})
}

// So it is after a restart of the agent or of the machine, right after which the edit comes.
func TestAVersionThatWorkedBeforeARestartIsOneToGoBackTo(t *testing.T) {
	restarts := map[string]func(r *rig){
		"the machine boots": func(r *rig) {
			r.stop()
			r.reboot()
			r.start()
			r.want(watched("img:1"))
		},
		"the agent is killed, and it crashes": func(r *rig) {
			r.kill()
			r.start()
			r.want(watched("img:1"))
			r.Exit("c", 1)
		},
	}
	for name, restart := range restarts {
		for _, late := range []time.Duration{0, 5 * time.Second, 8 * time.Second} {
			t.Run(fmt.Sprint(name, ", and the edit comes after ", late), func(t *testing.T) {
				live(t, func(r *rig) {
					r.Program("img:2", critest.Exits(1))
					r.want(watched("img:1"))
					r.after(time.Minute)
					former := r.imageID()
					restart(r)
					r.after(late)
					r.want(watched("img:2", elsewhereNow))
					r.after(20 * time.Minute)
					r.isBack(former, "")
				})
			})
		}
	}
}

// So it is where the disk takes the record of it no sooner than long after the boot.
func TestAVersionThatWorkedIsOneToGoBackToOnceTheDiskIsWellAgain(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		r.Program("img:2", critest.Exits(1))
		r.want(watched("img:1"))
		r.after(time.Minute)
		former := r.imageID()
		junk := fill(r.T, disk)
		r.want(watched("img:2", elsewhereNow))
		r.after(time.Minute)
		r.stop()
		r.reboot()
		r.start()
		r.want(watched("img:2", elsewhereNow))
		r.after(10 * time.Minute)
		r.runsID(former)
		noErr(r.T, os.Remove(junk))
		r.after(20 * time.Minute)
		r.isBack(former, "")
	})
}

// A version that was not ready yet when the edit came, and is by the time its successor can start.
func TestAVersionThatWorksWhileItsSuccessorWaitsIsOneToGoBackTo(t *testing.T) {
	waits := map[string]func(r *rig) (end func()){
		"for its image": func(r *rig) func() {
			r.offline("img:new")
			return func() { r.online("img:new") }
		},
		"as it is held": func(r *rig) func() {
			r.holds("web", "", "")
			return func() { r.releases("web") }
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.Program("img:new", critest.Exits(1))
				a := answers(r, "readiness")
				a.fail("readiness")
				r.want(strings.Replace(watched("img:1"), "image:", "readinessProbe: {periodSeconds: 1, exec: {command: [readiness]}}, image:", 1))
				r.after(5 * time.Second)
				end := wait(r)
				r.want(watched("img:new", elsewhereNow))
				r.after(20 * time.Second)
				a.fail()
				r.after(time.Hour)
				former := r.imageID()
				end()
				r.after(20 * time.Minute)
				r.isBack(former, "")
			})
		})
	}
}

// The room of the former version is kept while its successor is on trial, and no longer.
func TestARollbackFindsThePortOfTheFormerVersion(t *testing.T) {
	withPort := func(doc string) string {
		return strings.Replace(doc, "image:", "ports: [{containerPort: 80, hostPort: 80}], image:", 1)
	}
	waiting, other := "default/web-n/c", withPort(manifest("other", "img:1"))
	for _, restarted := range []bool{false, true} {
		live(t, func(r *rig) {
			r.Program("img:2", critest.ExitsAfter(200*time.Millisecond, 1))
			r.AddImage("img:3")
			r.want(withPort(manifest("web", "img:1")))
			former := r.imageID()
			r.after(time.Second)
			r.want(withPort(manifest("web", "img:1")), other)
			r.want(watched("img:2"), other)
			if restarted {
				r.after(5 * time.Second)
				r.kill()
				r.start()
				r.want(watched("img:2"), other)
			}
			r.after(10 * time.Minute)
			r.expect(waiting)
			if got := r.imageID(); got != former {
				r.Errorf("%s is there, not %s", got, former)
			}
			r.want(watched("img:3"), other)
			r.after(time.Second)
			r.expect(waiting)
			r.after(time.Minute)
			r.expect("default/other-n/c", waiting)
		})
	}
}

// So it is when the pod is stopped and started meanwhile.
func TestARollbackFindsThePortOfTheFormerVersionAfterAStop(t *testing.T) {
	const port = "ports: [{containerPort: 80, hostPort: 80}], image:"
	first, other := strings.Replace(manifest("web", "img:1"), "image:", port, 1), strings.Replace(manifest("other", "img:1"), "image:", port, 1)
	next := healthy("10m", strings.Replace(manifest("web", "img:2"), "image:", "readinessProbe: {exec: {command: [unready]}}, image:", 1))
	live(t, func(r *rig) {
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) { return "not yet", 1, nil })
		r.want(first)
		former := r.imageID()
		r.after(time.Minute)
		r.want(next)
		r.after(time.Minute)
		r.stops("web")
		r.after(time.Minute)
		r.starts("web")
		r.after(time.Minute)
		r.want(next, other)
		r.after(time.Minute)
		r.expect("default/web-n/c")
		r.after(20 * time.Minute)
		r.expect("default/web-n/c")
		if got := r.imageID(); got != former {
			t.Errorf("%s is there, not %s", got, former)
		}
	})
}

// Two watched pods that want each other's ports get them: the room of the former versions is
// given up for that.
func TestWatchedPodsSwapTheirPorts(t *testing.T) {
	with := func(name, port, image string) string {
		return healthy("30s", strings.Replace(manifest(name, image), "image:", "ports: [{containerPort: 80, hostPort: "+port+"}], image:", 1))
	}
	live(t, func(r *rig) {
		r.want(with("a", "80", "img:1"), with("b", "81", "img:1"))
		r.after(time.Minute)
		r.want(with("a", "81", "img:2"), with("b", "80", "img:2"))
		r.after(5 * time.Minute)
		r.expect("default/a-n/c", "default/b-n/c")
		for _, name := range []string{"default/a-n", "default/b-n"} {
			if got := r.status(name).ContainerStatuses[0].Image; !strings.HasSuffix(got, "img:2") {
				r.Errorf("%s runs %s", name, got)
			}
		}
	})
}

// Nothing restarts for an edit that starts nothing, though the pod is watched.
func TestAnEditOfAWatchedPodThatStartsNothingRestartsNothing(t *testing.T) {
	labelled := func(label string) string {
		return strings.Replace(watched("img:1"), "name: web", "name: web, labels: {v: "+label+"}", 1)
	}
	for name, docs := range map[string][2]string{
		"a label":               {labelled("one"), labelled("two")},
		"to be watched":         {manifest("web", "img:1"), watched("img:1")},
		"to be watched no more": {watched("img:1"), manifest("web", "img:1")},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.want(docs[0])
				r.after(time.Minute)
				r.stopsNothing(func() {
					r.want(docs[1])
					r.after(time.Second)
					if n := r.updateRecords(); n != 0 {
						r.Errorf("%d records", n)
					}
					r.after(time.Minute)
				})
			})
		})
	}
}

// A version that restarts a container is tried, and taken back, in the pod that runs.
func TestWhatIsChangedInPlaceGoesBackInPlace(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		r.want(strings.Replace(manifest("web", "img:1"), "name: web", "name: web, labels: {v: one}", 1))
		former := r.imageID()
		before, _ := r.store.Pod("default/web-n")
		sandbox := r.Sandboxes()[0].ID
		r.want(strings.Replace(watched("img:2"), "name: web", "name: web, labels: {v: two}", 1))
		r.after(time.Minute)
		r.isBack(former, "img:2")
		p, _ := r.store.Pod("default/web-n")
		if all := r.Sandboxes(); len(all) != 1 || all[0].ID != sandbox || p.UID != before.UID || p.Labels["v"] != "one" {
			r.Errorf("sandboxes %+v, uid %s, labels %v", all, p.UID, p.Labels)
		}
	})
}

// What the version that gave way had left alone is left alone by the one that comes back.
func TestWhatGoesBackInPlaceRestartsWhatHadChanged(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		both := func(image string) string {
			doc := manifest("web", image, "initContainers: [{name: init, image: 'img:1'}]")
			return strings.Replace(doc, "containers: [", "containers: [{name: other, image: 'img:1'}, ", 1)
		}
		r.Program("init", critest.Exits(0))
		r.want(both("img:1"))
		r.after(time.Minute)
		other, _ := r.Container("other")
		sandbox := r.Sandboxes()[0].ID
		r.want(strings.Replace(both("img:2"), "metadata: {", "metadata: {annotations: {monopod.update-health: 30s}, ", 1))
		r.after(3 * time.Second)
		r.kill()
		r.start()
		r.want(strings.Replace(both("img:2"), "metadata: {", "metadata: {annotations: {monopod.update-health: 30s}, ", 1))
		r.after(10 * time.Minute)
		if n := len(r.rollbacks()); n != 1 {
			t.Errorf("%d rollbacks", n)
		}
		if now, _ := r.Container("other"); now.ID != other.ID || r.Sandboxes()[0].ID != sandbox {
			t.Error("what had not changed was restarted")
		}
		r.expect("default/web-n/c", "default/web-n/other")
	})
}

// The bad version does not run on for a disk that does not take why it goes. That is written as
// soon as the disk takes it.
func TestAVersionGivesWayThoughTheDiskDoesNotTakeIt(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("img:2", critest.Exits(1))
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(watched("img:2"))
		r.after(2 * time.Second)
		release := pin(t, r.one("updates/*.json"))
		r.after(time.Minute)
		r.isBack(former, "exit code 1")
		release()
		r.after(time.Minute)
		r.kill()
		r.start()
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.runsID(former)
	})
}

// Nor for a disk that does not say whether it takes it, and has not for a while.
func TestAVersionGivesWayThoughTheDiskHangs(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		former := r.imageID()
		r.want(slow("img:2"))
		r.after(15 * time.Second)
		r.stop() // the loop is the test's now
		r.stop = func() {}
		r.sync.filings.saving = true // and what is saved does not come back
		ended, end := context.WithCancel(r.Context())
		end()
		offers := func(after time.Duration, want string) {
			r.Helper()
			time.Sleep(after)
			r.sync.pods.due(time.Now())
			r.sync.turn(ended)
			web := r.sync.pods.see(manifests.Key{Namespace: "default", Name: "web-n"})
			if got := web.Offered.Spec.Containers[0].Image; got != want || web.Trial.Reason == "" {
				r.Errorf("%s is offered, want %s, as %q", got, want, web.Trial.Reason)
			}
		}
		offers(15*time.Second, "img:2") // it was not ready within 30 s
		offers(10*time.Second-1, "img:2")
		offers(1, former)
	})
}

// The record of a trial is written when something of it changes, not each time that it is looked at.
func TestATrialWritesItsRecordAFewTimes(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		r.want(healthy("10m", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1)))
		r.after(time.Second)
		was, writes := "", 0
		for range 590 {
			r.after(time.Second)
			now, err := os.ReadFile(r.one("updates/*.json"))
			noErr(t, err)
			if string(now) != was {
				was = string(now)
				writes++
			}
		}
		if writes > 11 {
			t.Errorf("%d times in 10 min", writes)
		}
	})
}

// What gave way stays away over an agent that cannot read the folder: with images by digest the
// version that is back is the former one to the byte, and all that the next agent knows is its checkpoint.
func TestWhatIsRolledBackSurvivesAnUnreadableFolder(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		id := r.imageID()
		byDigest := manifest("web", id)
		r.want(byDigest)
		r.after(time.Minute)
		r.Program("img:2", critest.Exits(1))
		r.want(watched("img:2"))
		r.after(time.Minute)
		r.isBack(id, "img:2")
		r.kill()
		r.start()
		r.offers <- manifests.Snapshot{Pods: r.known}
		r.settle()
		r.after(time.Minute)
		r.stopsNothing(func() {
			r.want(watched("img:2"))
			r.after(time.Minute)
		})
		r.runsID(id)
	})
}

// What a version wrote last that gave way is kept with its record, and told, with the ids by which
// `monopod ps --files` knows the versions.
func TestTheLastOutputOfAVersionThatGaveWayIsTold(t *testing.T) {
	for kind, doc := range map[string]string{"in place": slow("img:2"), "replaced": elsewhere(slow("img:2"))} {
		t.Run(kind, func(t *testing.T) {
			live(t, func(r *rig) {
				answers(r, "readiness")
				r.want(manifest("web", "img:1"))
				_, was := r.fileIs(0)
				r.want(doc)
				r.after(10 * time.Second)
				p, _ := r.store.Pod("default/web-n")
				c := p.Status.ContainerStatuses[0]
				dir := podlog.Dir(filepath.Join(r.dir, "logs"), p, "c")
				noErr(t, os.MkdirAll(dir, 0o750))
				var text strings.Builder
				for k := range 30 {
					fmt.Fprintf(&text, "2000-01-01T00:00:00Z stdout F line %d of the output\n", k)
				}
				noErr(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.log", c.RestartCount)), []byte(text.String()), 0o600))
				r.after(time.Minute)
				_, now := r.fileIs(0)
				told := strings.Join(r.rollbacks(), "|")
				for _, want := range []string{"c: line 10 of the output\n", "c: line 29 of the output", fmt.Sprintf("version %.8s (img:2)", now.Hash), fmt.Sprintf("version %.8s is back", was.Hash)} {
					if !strings.Contains(told, want) {
						t.Errorf("it is not told %q but %q", want, told)
					}
				}
				if strings.Contains(told, "line 9 ") || now.Running != was.Hash {
					t.Errorf("it is told %q; %.8s runs", told, now.Running)
				}
				record, err := os.ReadFile(r.one("updates/*.json"))
				noErr(t, err)
				if !strings.Contains(string(record), "line 29 of the output") {
					t.Errorf("the record is %s", record)
				}
			})
		})
	}
}

// A version that works is one to go back to, however soon the next one comes.
func TestAVersionThatCameAMomentAgoIsOneToGoBackTo(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:3")
		r.Program("img:3", critest.ExitsAfter(200*time.Millisecond, 1))
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.want(manifest("web", "img:2"))
		r.after(3 * time.Second)
		former := r.imageID()
		r.want(watched("img:3"))
		r.after(10 * time.Minute)
		r.runsID(former)
	})
}

// What never worked is none to go back to, and no reason to wait.
func TestUpdatesOfWhatNeverWorkedFollowOneAnother(t *testing.T) {
	live(t, func(r *rig) {
		a := answers(r, "readiness")
		r.AddImage("img:3")
		r.offline("img:2")
		r.want(strings.Replace(healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:1", 1)), "monopod.update-health", "other", 1))
		r.after(time.Minute)
		r.want(healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1))) // which is not there
		r.after(time.Minute)
		r.want(healthy("30s", strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:3", 1)))
		r.after(time.Minute)
		r.runsImage("img:3")
		a.fail()
	})
}
