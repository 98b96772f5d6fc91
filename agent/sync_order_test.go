package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/config"
	"monopod/agent/podstatus"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// after is a pod that starts after others; more is what its spec and its
// annotations say besides, the latter beginning with "monopod.".
func after(name, others, image string, more ...string) string {
	annotations, spec := "monopod.start-after: '"+others+"'", []string{}
	for _, m := range more {
		if strings.HasPrefix(m, "monopod.") {
			annotations += ", " + m
		} else {
			spec = append(spec, m)
		}
	}
	return strings.Replace(manifest(name, image, spec...), "}", ", annotations: {"+annotations+"}}", 1)
}

const limited = "monopod.start-after-timeout: 90s"

// wantHeld checks that a pod waits for its turn.
func (r *rig) wantHeld(key, text string) {
	r.Helper()
	st := r.status(key)
	if st.Phase != v1.PodPending || len(st.ContainerStatuses) == 0 || st.QOSClass == "" {
		r.Fatalf("%s has the status %+v", key, st)
	}
	w := st.ContainerStatuses[0].State.Waiting
	if w == nil || w.Reason != "WaitingForPods" || !strings.HasPrefix(w.Message, text) {
		r.Errorf("%s waits: %+v, want %q", key, w, text)
	}
	for _, c := range st.Conditions {
		if c.Type == v1.PodReadyToStartContainers && (c.Status != v1.ConditionFalse || c.Reason != "WaitingForPods") {
			r.Errorf("condition %+v", c)
		}
	}
}

// wantProblem checks the one problem of a manifest; none: "".
func (r *rig) wantProblem(file int, text string, warning bool) {
	r.Helper()
	f := r.store.Manifests().Files[file]
	if text == "" && len(f.Problems) == 0 {
		return
	}
	if len(f.Problems) != 1 || f.Problems[0].Message != text || f.Problems[0].Warning != warning ||
		f.Problems[0].Field != "metadata.annotations[monopod.start-after]" || f.Problems[0].Pod == "" {
		r.Errorf("file %+v, want %q", f, text)
	}
}

func TestAPodStartsAfterAnotherIsReady(t *testing.T) {
	live(t, func(r *rig) {
		slow := r.Fault(critest.On("RunPodSandbox").Of("db-n").Hang())
		r.want(after("web", "db", "img:1"), manifest("db", "img:1"))
		r.after(time.Hour)
		r.expect()
		r.wantHeld("default/web-n", "waits for default/db to be ready")
		r.wantProblem(0, "", false)
		if st := r.status("default/web-n"); st.StartTime != nil {
			r.Errorf("it began at %s", st.StartTime)
		}
		slow.Release()
		r.settle()
		r.expect("default/db-n/c", "default/web-n/c")
		if st := r.status("default/web-n"); st.Phase != v1.PodRunning || !st.StartTime.Time.Equal(time.Now()) {
			r.Errorf("status %+v", st)
		}
	})
}

func TestPodsStartInARow(t *testing.T) {
	live(t, func(r *rig) {
		r.want(after("a", "x/b", "img:1"), strings.Replace(after("b", "default/c-n, c2", "img:1"), "name: b", "name: b, namespace: x", 1),
			manifest("c", "img:1"), strings.Replace(manifest("c2", "img:1"), "name: c2", "name: c2, namespace: x", 1))
		r.expect("default/a-n/c", "x/b-n/c", "default/c-n/c", "x/c2-n/c")
		var order []string
		for _, b := range r.Sandboxes() {
			order = append(order, b.Config.Metadata.Name)
		}
		if got := strings.Join(order, " "); got != "c-n c2-n b-n a-n" && got != "c2-n c-n b-n a-n" {
			r.Errorf("made in the order %s", got)
		}
	})
}

func TestAFormerJobIsReadyOnlyIfItSucceeded(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("default/good-n/c", critest.Exits(0))
		r.Program("default/bad-n/c", critest.Exits(1))
		good, bad := manifest("good", "img:1", "restartPolicy: Never"), manifest("bad", "img:1", "restartPolicy: Never")
		all := []string{good, bad, after("a", "good", "img:1"), after("b", "bad", "img:1")}
		check := func() {
			r.Helper()
			r.after(time.Minute)
			r.expect("default/a-n/c")
			r.wantHeld("default/b-n", "waits for default/bad to be ready")
		}
		r.want(all...)
		check()
		r.stop()
		r.start()
		r.want(all...)
		check()
	})
}

func TestWhoHasBegunIsNotHeldAgain(t *testing.T) {
	live(t, func(r *rig) {
		db, web := manifest("db", "img:1"), after("web", "db", "img:1")
		r.want(db, web)
		r.expect("default/db-n/c", "default/web-n/c")
		r.Program("default/db-n/c", critest.Exits(1))
		check := func() {
			r.Helper()
			r.after(10 * time.Minute)
			r.expect("default/web-n/c")
			r.Exit("default/web-n/c", 1)
			r.after(time.Minute)
			r.expect("default/web-n/c")
		}
		r.Exit("default/db-n/c", 1)
		check()
		r.stop()
		r.start()
		r.want(db, web)
		check()
		r.want(manifest("other", "img:1", "restartPolicy: Never"), web)
		r.Exit("default/other-n/c", 0)
		check()
		r.wantProblem(1, "there is no pod default/db", true)
	})
}

func TestAPodThatHasWaitedLongEnoughStarts(t *testing.T) {
	live(t, func(r *rig) {
		web := after("web", "db", "img:1", limited)
		r.want(web)
		r.wantHeld("default/web-n", "waits for default/db to be ready, at most until 2000-01-01 00:01:30 UTC: there is no pod default/db")
		r.wantProblem(0, "there is no pod default/db", false)
		r.after(60 * time.Second)
		r.stop()
		r.after(10 * time.Second)
		r.start()
		r.want("# the wish is the same\n" + web)
		r.after(19 * time.Second)
		r.expect()
		r.after(time.Second)
		r.expect("default/web-n/c")
		r.wantProblem(0, "there is no pod default/db", true)
		if !strings.Contains(r.log.String(), "start-after timeout passed") {
			r.Error("the log does not say why it starts")
		}
	})
}

func TestANameThatNobodyHasHealsWhenThePodAppears(t *testing.T) {
	live(t, func(r *rig) {
		r.want(after("web", "db", "img:1"))
		r.after(time.Hour)
		r.wantHeld("default/web-n", "waits for default/db to be ready: there is no pod default/db")
		r.want(after("web", "db", "img:1"), manifest("db", "img:1"))
		r.expect("default/web-n/c", "default/db-n/c")
		r.wantProblem(0, "", false)
		r.want()
		r.after(time.Minute)
		if len(r.store.Pods())+r.sync.table.Len()+len(r.sync.pods.order.after) > 0 {
			r.Errorf("left: %v %+v %+v", r.store.Pods(), r.sync.table, r.sync.pods.order)
		}
	})
}

func TestAHeldPodIsForgottenWithItsManifest(t *testing.T) {
	live(t, func(r *rig) {
		r.want(after("web", "db", "img:1"))
		r.want()
		if len(r.store.Pods())+r.sync.table.Len()+len(r.sync.pods.order.after) > 0 {
			r.Errorf("left: %v %+v %+v", r.store.Pods(), r.sync.table, r.sync.pods.order)
		}
	})
}

func TestACircleIsNamedWithItsPlaceAndEndsByATimeLimit(t *testing.T) {
	live(t, func(r *rig) {
		a, b := after("a", "b", "img:1", limited), after("b", "a", "img:1")
		r.want(a, b)
		r.wantProblem(0, "a circle: default/a starts after default/b starts after default/a", false)
		r.wantProblem(1, "a circle: default/b starts after default/a starts after default/b", false)
		s := *r.sync.last
		s.Files = slices.Clone(s.Files)
		first := *s.Files[0]
		s.Files[0] = &first
		first.Orders = map[string]decode.Position{"default/a-n": {Line: 3, Column: 9}}
		r.offers <- s
		r.settle()
		if p := r.store.Manifests().Files[0].Problems[0]; p.Line != 3 || p.Column != 9 || p.File != "/m/0.yaml" || p.Pod != "default/a-n" {
			r.Errorf("problem %+v", p)
		}
		r.after(89 * time.Second)
		r.expect()
		r.after(time.Second)
		r.expect("default/a-n/c", "default/b-n/c")
	})
}

func TestANewVersionWaitsWhileTheFormerOneRuns(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("db", "img:1"), after("web", "db", "img:1"))
		slow := r.Fault(critest.On("RunPodSandbox").Of("db-n").Hang())
		r.want(manifest("db", "img:2", "hostname: other"), after("web", "db", "img:2"))
		check := func() {
			r.Helper()
			r.after(time.Hour)
			r.expect("default/web-n/c")
			if c, _ := r.Container("default/web-n/c"); c.Config.Image.UserSpecifiedImage != "img:1" {
				r.Errorf("runs %s", c.Config.Image.UserSpecifiedImage)
			}
			r.wantProblem(1, "waits for default/db to be ready", false)
			if !r.store.Manifests().Files[1].Held {
				r.Error("the file is not said to be held")
			}
		}
		check()
		r.stop()
		r.start()
		r.want(manifest("db", "img:2", "hostname: other"), after("web", "db", "img:2"))
		check()
		slow.Release()
		r.ClearFaults()
		r.after(time.Minute)
		r.expect("default/web-n/c", "default/db-n/c")
		if c, _ := r.Container("default/web-n/c"); c.Config.Image.UserSpecifiedImage != "img:2" {
			r.Errorf("runs %s", c.Config.Image.UserSpecifiedImage)
		}
		r.wantProblem(1, "", false)
	})
}

func TestAHeldPodTakesNoPlace(t *testing.T) {
	live(t, func(r *rig) {
		held := strings.Replace(withPort("web", "img:1", 80), "name: web", "name: web, annotations: {monopod.start-after: db}", 1)
		r.want(held, withPort("other", "img:1", 80))
		r.expect("default/other-n/c")
		r.want(held, withPort("other", "img:1", 80), manifest("db", "img:1"))
		r.wantRefused("default/web-n", "NodePorts")
		r.want(held, manifest("db", "img:1"))
		r.after(time.Minute)
		r.expect("default/web-n/c", "default/db-n/c")
	})
}

func TestAPodThatHadItsTurnWaitsForItsPlaceOnly(t *testing.T) {
	live(t, func(r *rig) {
		held := strings.Replace(withPort("web", "img:1", 80), "name: web", "name: web, annotations: {monopod.start-after: db, "+limited+"}", 1)
		r.want(held, withPort("other", "img:1", 80))
		r.after(90 * time.Second)
		r.wantRefused("default/web-n", "NodePorts")
		r.want(held, withPort("other", "img:1", 80), manifest("more", "img:1"))
		r.wantRefused("default/web-n", "NodePorts")
	})
}

func TestAVersionThatIsHeldReplacesOneThatWasRefused(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.want(manifest("web", "img:2", "nodeSelector: {disk: ssd}"))
		r.want(after("web", "db", "img:2"))
		r.after(time.Hour)
		r.expect("default/web-n/c")
		r.wantProblem(0, "waits for default/db to be ready: there is no pod default/db", false)
	})
}

// A former version is good enough while the new one has no place.
func TestAFormerVersionThatIsReadyCountsWhileTheNewOneIsRefused(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("db", "img:1"))
		r.want(manifest("db", "img:1", "nodeSelector: {disk: ssd}"), after("web", "db", "img:1"))
		r.expect("default/web-n/c", "default/db-n/c")
	})
}

func TestAPodLetStartWhileTheRuntimeIsAwayIsPending(t *testing.T) {
	live(t, func(r *rig) {
		r.want(after("web", "db", "img:1", limited))
		r.Stop()
		r.after(2 * time.Minute)
		if st := r.status("default/web-n"); st.Phase != v1.PodPending || podstatus.WaitsForPods(&st) || st.StartTime == nil {
			r.Errorf("status %+v", st)
		}
		r.Resume()
		r.after(2 * time.Second)
		r.expect("default/web-n/c")
	})
}

func TestNewVersionsOfARowFollowEachOther(t *testing.T) {
	live(t, func(r *rig) {
		row := func(image string) []string {
			return []string{after("a", "b", image), after("b", "c", image), manifest("c", image, "hostname: v"+image[4:])}
		}
		r.want(row("img:1")...)
		slow := r.Fault(critest.On("RunPodSandbox").Of("c-n").Hang())
		r.want(row("img:2")...)
		r.after(time.Minute)
		for _, name := range []string{"default/a-n/c", "default/b-n/c"} {
			if c, _ := r.Container(name); c.Config.Image.UserSpecifiedImage != "img:1" {
				r.Errorf("%s runs %s", name, c.Config.Image.UserSpecifiedImage)
			}
		}
		slow.Release()
		r.after(time.Minute)
		for _, name := range []string{"default/a-n/c", "default/b-n/c"} {
			if c, _ := r.Container(name); c.Config.Image.UserSpecifiedImage != "img:2" {
				r.Errorf("%s runs %s", name, c.Config.Image.UserSpecifiedImage)
			}
		}
	})
}

func TestARetirementIsFinishedThoughTheNextVersionIsHeld(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Runs().IgnoresTerm())
		r.want(manifest("web", "img:1"))
		r.want()
		r.after(time.Second)
		r.stop()
		r.start()
		// Not a complete one, or the sandbox would be found as one that nobody knows.
		pods, _ := manifests.Decode("/m/0.yaml", []byte(after("web", "db", "img:2")), manifests.Options{NodeName: "n", NameSuffix: true})
		r.offers <- manifests.Snapshot{Pods: pods}
		r.after(31 * time.Second)
		r.expect()
		r.wantHeld("default/web-n", "waits for default/db to be ready")
	})
}

// A version that waits for its turn asks for no gate: nothing is looked at again and again
// while it waits.
func TestAVersionThatWaitsForItsTurnLooksAtNoGate(t *testing.T) {
	liveWith(t, clockIsSet, func(r *rig) {
		r.change(func(c *config.Config) { c.UpdateWindow = "Sun 02:00-04:00" })
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		next := strings.Replace(manifest("web", "img:2", "hostname: other"), "metadata: {", "metadata: {annotations: {monopod.start-after: db}, ", 1)
		r.want(next)
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if again := r.sync.pods.see(podKey("web")).Now.Again; !again.IsZero() {
			t.Errorf("it is decided again at %s", again)
		}
	})
}
