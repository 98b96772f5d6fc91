package agent

import (
	"context"
	"monopod/cri"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/agent/status"
)

// goesBack asks for a former version of web, as monopod rollback does; "" is the last one.
func (r *rig) goesBack(to string) error {
	r.Helper()
	answer := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	go func() { answer <- r.sync.Rollback(ctx, podKey("web"), to, "audit") }()
	r.settle()
	return <-answer
}

// mustGoBack is goesBack of a request that is not refused.
func (r *rig) mustGoBack(to string) {
	r.Helper()
	noErr(r.T, r.goesBack(to))
	r.settle()
}

// isRefused checks that nothing is rolled back, and why.
func (r *rig) isRefused(to, why string) {
	r.Helper()
	err := r.goesBack(to)
	if err == nil || !strings.Contains(err.Error(), why) {
		r.Errorf("%q is answered by %v, want %s", to, err, why)
	}
}

// versions tells of each version of web its images and what is said of it, the first one first.
func (r *rig) versions() (all []string) {
	r.Helper()
	answer := make(chan *status.History, 1)
	go func() {
		h, err := r.sync.History(context.Background(), podKey("web"))
		if err != nil {
			r.Error(err)
		}
		answer <- h
	}()
	r.settle()
	h := <-answer
	if h == nil {
		return nil
	}
	for _, v := range h.Versions {
		all = append(all, strings.Join(v.Images, ",")+marksOf(&v))
	}
	return all
}

func marksOf(v *status.PastVersion) (text string) {
	for _, mark := range []struct {
		is   bool
		text string
	}{{v.ReadySince == nil, "never ready"}, {v.LastReady != nil, "was ready"}, {v.Running, "runs"}, {v.Manifest, "given"}, {v.ComesBack, "comes back"}, {v.RolledBack != "", "rolled back"}} {
		if mark.is {
			text += " " + mark.text
		}
	}
	return text
}

func (r *rig) wantVersions(want ...string) {
	r.Helper()
	if got := strings.Join(r.versions(), "; "); got != strings.Join(want, "; ") {
		r.Errorf("the versions are\n%s, want\n%s", got, strings.Join(want, "; "))
	}
}

// hashOf is how a person names the version that the manifest gives now.
func (r *rig) hashOf(doc string) string {
	return string(r.decode(doc).Annotations["kubernetes.io/config.hash"])
}

// two lets a version be ready, and then the next one.
func (r *rig) two() (former, present string) {
	r.Helper()
	r.want(manifest("web", "img:1"))
	r.after(time.Minute)
	former = r.imageID()
	r.want(manifest("web", "img:2"))
	r.after(time.Minute)
	r.runsImage("img:2")
	return former, r.imageID()
}

// isAskedBack checks that a former version runs, and that all who tell of it say who asked.
func (r *rig) isAskedBack(image string) {
	r.Helper()
	r.runsID(image)
	for what, text := range map[string]string{"the status": r.words("default/web-n"), "the events": strings.Join(r.rollbacks(), "; ")} {
		if !strings.Contains(text, "img:2") || !strings.Contains(text, "by request at ") || !strings.Contains(text, ": audit") {
			r.Errorf("%s: %q", what, text)
		}
	}
	if n := r.samples()["monopod_rollbacks_total"]; n != 0 {
		r.Errorf("%v are counted among those that did not work", n)
	}
}

func TestAPersonGetsTheFormerVersionBack(t *testing.T) {
	live(t, func(r *rig) {
		former, _ := r.two()
		r.wantVersions("img:2 runs given", "img:1 was ready")
		r.mustGoBack("")
		r.after(time.Minute)
		r.isAskedBack(former)
		r.wantVersions("img:1 runs", "img:2 was ready given rolled back")
		r.want(manifest("web", "img:2"))
		r.after(time.Hour)
		r.isAskedBack(former)
		if n := len(r.rollbacks()); n != 1 {
			r.Errorf("told %d times", n)
		}
		r.isRefused("", "has no earlier version that was ready")
	})
}

// Whenever the agent dies after its answer, and whatever the machine does, the former version is
// back, and the present content is not tried again.
func TestARollbackByRequestSurvivesTheAgentAndTheMachine(t *testing.T) {
	for name, happens := range map[string]func(r *rig){
		"killed at once": func(r *rig) { r.kill() },
		"killed once it is back": func(r *rig) {
			r.after(time.Minute)
			r.kill()
		},
		"rebooted at once": func(r *rig) {
			r.kill()
			r.reboot()
		},
		"rebooted once it is back": func(r *rig) {
			r.after(time.Minute)
			r.stop()
			r.reboot()
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				former, _ := r.two()
				r.mustGoBack("")
				happens(r)
				r.start()
				r.want(manifest("web", "img:2"))
				r.after(time.Minute)
				r.runsID(former)
				if words := r.words("default/web-n"); !strings.Contains(words, "by request at ") || !strings.Contains(words, "is back until the manifest changes") {
					r.Errorf("it says %q", words)
				}
				r.wantVersions("img:1 runs", "img:2 was ready given rolled back")
			})
		})
	}
}

func TestARollbackThatIsRefusedChangesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		so  func(r *rig)
		to  string
		why string
	}{
		"a hold":             {func(r *rig) { r.holds("web", "audit", "") }, "", "pod default/web-n is not rolled back: it is held: audit (`monopod release web-n` ends it)"},
		"a hold of the node": {func(r *rig) { r.holds("", "audit", "") }, "", "pod default/web-n is not rolled back: the node is held: audit (`monopod release` ends it)"},
		"an unknown version": {nil, "xyz", "pod default/web-n has no version xyz that was ready: there are "},
		"a removed pod": {func(r *rig) {
			r.want()
			r.after(time.Minute)
		}, "", "there is no pod default/web-n"},
		"the version of the manifest": {func(r *rig) {}, "given", "is the one that the manifest of pod default/web-n gives"},
		"one that is back already": {func(r *rig) {
			r.mustGoBack("")
			r.after(time.Minute)
		}, "former", "pod default/web-n went back to version "},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.AddImage("img:3")
				r.two()
				if row.so != nil {
					row.so(r)
				}
				to := map[string]string{"given": r.hashOf(manifest("web", "img:2")), "former": r.hashOf(manifest("web", "img:1"))}
				r.stopsNothing(func() {
					if row.to == "given" || row.to == "former" {
						r.isRefused(to[row.to][:6], row.why)
					} else {
						r.isRefused(row.to, row.why)
					}
					r.after(time.Minute)
				})
			})
		})
	}
}

// What it lacks is named at once, if no manifest gives it any more.
func TestARollbackNamesTheObjectThatIsGone(t *testing.T) {
	live(t, func(r *rig) {
		r.want(generated("img:1", "app-1")...)
		r.after(time.Minute)
		former := r.imageID()
		r.want(generated("img:2", "app-2")...)
		r.after(time.Minute)
		r.stopsNothing(func() {
			r.isRefused("", "the former version lacks what is gone: configmap \"app-1\" not found")
			r.after(time.Minute)
		})
		r.runsImage("img:2")
		r.want(append(generated("img:2", "app-2"), object("ConfigMap", "app-1", "a: one"))...)
		r.mustGoBack("")
		r.after(time.Minute)
		r.runsID(former)
	})
}

// An image that is gone is waited for, as with any update: nothing stops before it is there.
func TestARollbackWaitsForAnImage(t *testing.T) {
	live(t, func(r *rig) {
		former, _ := r.two()
		noErr(r.T, cri.New(r.Conn()).RemoveImage(context.Background(), "img:1"))
		r.offline("")
		r.stopsNothing(func() {
			r.mustGoBack("")
			r.after(time.Hour)
		})
		r.runsImage("img:2")
		if words := r.words("default/web-n"); !strings.Contains(words, "update waits: ") || !strings.Contains(words, "no route to host") {
			r.Errorf("it says %q", words)
		}
		r.wantVersions("img:2 runs given rolled back", "img:1 was ready comes back")
		r.AddImage("img:1")
		r.after(time.Hour)
		r.isAskedBack(former)
	})
}

// A change of the manifest ends it, also before anything has come back.
func TestAnEditEndsARollbackByRequest(t *testing.T) {
	for _, comesFirst := range []time.Duration{0, time.Minute} {
		live(t, func(r *rig) {
			r.AddImage("img:3")
			r.two()
			r.mustGoBack("")
			r.after(comesFirst)
			r.want(manifest("web", "img:3"))
			r.after(time.Minute)
			r.replaced("img:3")
			if n := r.updateRecords(); n != 0 {
				r.Errorf("%d records are left", n)
			}
			r.want(manifest("web", "img:2")) // which another edit gives again
			r.after(time.Minute)
			r.replaced("img:2")
		})
	}
}

// A request that waits, as for an image, is ended by an edit, too. What that goes back to is the version
// that ran and worked, not the one that could not come.
func TestAnEditOfARollbackThatWaitsGoesBackToWhatRuns(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		_, present := r.two()
		noErr(r.T, cri.New(r.Conn()).RemoveImage(context.Background(), "img:1"))
		r.AddImage("img:3")
		r.offline("")
		r.mustGoBack("")
		r.after(time.Minute)
		r.want(unready("img:3"))
		r.after(10 * time.Second)
		r.runsImage("img:3")
		r.after(2 * time.Minute)
		r.isBack(present, "(img:3): it was not ready within 30s")
	})
}

// What came back is the version that it was, also once an edit has ended the rollback.
func TestAVersionThatCameBackIsOneVersionWhateverFollows(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:3")
		r.two()
		r.mustGoBack("")
		r.after(time.Minute)
		r.holds("web", "audit", "")
		for range 2 {
			r.want(manifest("web", "img:3"))
			r.after(time.Minute)
			r.wantVersions("img:3 never ready given", "img:1 runs", "img:2 was ready")
			r.kill()
			r.start()
		}
		r.want(manifest("web", "img:3"))
		r.releases("web")
		r.after(time.Minute)
		r.wantVersions("img:3 runs given", "img:1 was ready", "img:2 was ready")
	})
}

// hashes returns the names of web's versions for a request, the first one first.
func (r *rig) hashes() (all []string) {
	r.Helper()
	answer := make(chan *status.History, 1)
	go func() {
		h, _ := r.sync.History(context.Background(), podKey("web"))
		answer <- h
	}()
	r.settle()
	for _, v := range (<-answer).Versions {
		all = append(all, v.Hash)
	}
	return all
}

// A uid of its own is no name of a version, as all versions have it; what one is called is the same
// for the next agent.
func TestVersionsWithAUIDOfTheirOwnAreToldApart(t *testing.T) {
	live(t, func(r *rig) {
		own := func(image string) string {
			return strings.Replace(manifest("web", image), "metadata: {", "metadata: {uid: mine, ", 1)
		}
		for _, image := range []string{"img:1", "img:2", "img:3"} {
			r.AddImage(image)
			r.want(own(image))
			r.after(time.Minute)
		}
		before := r.hashes()
		r.kill()
		r.start()
		r.want(own("img:3"))
		r.after(time.Minute)
		if now := r.hashes(); len(now) != 3 || !slices.Equal(now, before) {
			t.Fatalf("the versions are called %v, before %v", now, before)
		}
		r.mustGoBack(before[2])
		r.after(time.Minute)
		r.wantVersions("img:1 runs", "img:3 was ready given rolled back", "img:2 was ready")
		if words := r.words("default/web-n"); strings.Contains(words, "mine") {
			t.Errorf("it says %q", words)
		}
	})
}

// A window and the lock of the workload keep away what comes by itself.
func TestARollbackByRequestPassesTheWindowAndTheLock(t *testing.T) {
	liveWith(t, clockIsSet, func(r *rig) {
		r.want(lockable("img:1"))
		r.after(time.Minute)
		former := r.imageID()
		r.want(lockable("img:2"))
		r.after(time.Minute)
		shut(r)
		r.change(r.configure)
		r.locked()
		r.mustGoBack("")
		r.after(time.Minute)
		r.runsID(former)
	})
}

// While the disk does not take the request it is no request, and nothing changes.
func TestARollbackThatTheDiskDoesNotTakeIsNone(t *testing.T) {
	live(t, func(r *rig) {
		former, _ := r.two()
		inTheWay := filepath.Join(r.dir, "updates")
		noErr(r.T, os.WriteFile(inTheWay, nil, 0o600))
		r.stopsNothing(func() {
			r.isRefused("", "record of the update of default/web-n: ")
			r.want(manifest("web", "img:2"))
			r.after(time.Hour)
		})
		r.replaced("img:2")
		r.wantVersions("img:2 runs given", "img:1 was ready")
		noErr(r.T, os.Remove(inTheWay))
		r.after(time.Minute)
		r.mustGoBack("")
		r.after(time.Minute)
		r.isAskedBack(former)
	})
}

// A version that is on trial is given up by a person as by its verdict.
func TestAPersonNeedNotWaitForTheVerdict(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		former := r.imageID()
		r.want(unready("img:2"))
		r.after(5 * time.Second)
		r.mustGoBack("")
		r.after(time.Second)
		r.want(unready("img:2"))
		r.after(time.Hour)
		r.isAskedBack(former)
		r.wantVersions("img:2 never ready given rolled back", "img:1 runs")
	})
}

// An update that waits is given up, and what runs stays as it is.
func TestARollbackOfAnUpdateThatWaitsRestartsNothing(t *testing.T) {
	live(t, func(r *rig) {
		r.two()
		r.offline("img:9")
		r.want(manifest("web", "img:9"))
		r.after(time.Minute)
		r.stopsNothing(func() {
			r.mustGoBack("")
			r.after(time.Hour)
			r.online("img:9")
			r.after(time.Hour)
			r.kill()
			r.start()
			r.want(manifest("web", "img:9"))
			r.after(time.Hour)
		})
		r.wantVersions("img:9 never ready given rolled back", "img:2 runs", "img:1 was ready")
	})
}

// Three versions are remembered, those that were ready last; a version that works again moves up.
func TestThreeVersionsAreRemembered(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:3", "img:4")
		for _, image := range []string{"img:1", "img:2", "img:3", "img:4"} {
			r.want(manifest("web", image))
			r.after(time.Minute)
		}
		r.wantVersions("img:4 runs given", "img:3 was ready", "img:2 was ready")
		r.mustGoBack(r.hashOf(manifest("web", "img:2"))[:8])
		r.after(time.Minute)
		r.wantVersions("img:2 runs", "img:4 was ready given rolled back", "img:3 was ready")
		r.mustGoBack("")
		r.after(time.Minute)
		r.wantVersions("img:3 runs", "img:2 was ready", "img:4 was ready given rolled back")
	})
}

// A version that was not ready for long enough is none to go back to.
func TestAVersionThatNeverWorkedIsNotRemembered(t *testing.T) {
	live(t, func(r *rig) {
		answers(r, "readiness")
		r.want(strings.Replace(probedManifest("web", byExec("readiness")), "img:1", "img:2", 1))
		r.after(time.Minute)
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.wantVersions("img:1 runs given")
		r.isRefused("", "pod default/web-n has no earlier version that was ready")
	})
}

func TestAVersionThatWasReadyForAMomentIsNotRemembered(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:3")
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.want(manifest("web", "img:2"))
		r.after(9 * time.Second)
		r.want(manifest("web", "img:3"))
		r.after(time.Minute)
		r.wantVersions("img:3 runs given", "img:1 was ready")
	})
}

// What is remembered is written when it changes, and goes with its pod.
func TestWhatIsRememberedIsWrittenOnceAndGoesWithThePod(t *testing.T) {
	live(t, func(r *rig) {
		r.two()
		file := r.one("history/*.json")
		before, err := os.Stat(file)
		noErr(r.T, err)
		r.stop()
		r.start()
		r.want(manifest("web", "img:2"))
		r.after(time.Hour)
		now, err := os.Stat(file)
		if err != nil || !os.SameFile(before, now) {
			r.Errorf("it was written again: %v", err)
		}
		r.stop()
		noErr(r.T, os.WriteFile(filepath.Join(r.dir, "history", "of-no-pod.json"), nil, 0o600))
		r.start()
		r.want(manifest("web", "img:2"))
		r.after(time.Minute)
		r.one("history/*.json")
		r.want()
		r.after(time.Minute)
		if left, _ := filepath.Glob(filepath.Join(r.dir, "history", "*")); len(left) > 0 {
			r.Errorf("%v are left", left)
		}
	})
}
