package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"monopod/agent/config"
	"monopod/cri/critest"
	"monopod/manifests"
)

func TestAnUpdateUnderTheSameUIDWaitsToo(t *testing.T) {
	live(t, func(r *rig) {
		fixed := func(image string) string {
			return strings.Replace(manifest("web", image), "{name: web}", "{name: web, uid: my-own-uid}", 1)
		}
		r.offline("img:9")
		r.want(fixed("img:1"))
		r.stopsNothing(func() {
			r.want(fixed("img:9"))
			r.after(time.Minute)
			r.kill()
			r.start()
			r.want(fixed("img:9"))
			r.after(time.Hour)
		})
		r.updateWaits(`image img:9`)
		r.online("img:9")
		r.after(10 * time.Minute)
		r.replaced("img:9")
	})
}

func TestStopFirstIsTheKubeletsWay(t *testing.T) {
	annotated := strings.Replace(manifest("web", "img:9"), "{name: web}", "{name: web, annotations: {monopod.update: stop-first}}", 1)
	prepare := strings.Replace(annotated, "stop-first", "prepare", 1)
	rows := []struct {
		name, strategy, doc string
		waits               bool
	}{
		{"annotation", "Prepare", annotated, false},
		{"setting", "StopFirst", manifest("web", "img:9"), false},
		{"the annotation wins", "StopFirst", prepare, true},
		{"neither", "Prepare", manifest("web", "img:9"), true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.UpdateStrategy = row.strategy } }, func(r *rig) {
				r.offline("img:9")
				r.want(manifest("web", "img:1"))
				r.want(row.doc)
				r.after(time.Minute)
				if waits := len(r.Running()) > 0; waits != row.waits {
					r.Errorf("version 1 runs: %v", waits)
				}
			})
		})
	}
}

func TestASettingEndsTheWaitsOfUpdates(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.want(manifest("web", "img:1"))
		r.want(manifest("web", "img:9"))
		r.after(time.Minute)
		r.updateWaits(`image img:9`)
		r.change(func(c *config.Config) { c.UpdateStrategy = "StopFirst" })
		r.after(time.Minute)
		r.expect()
	})
}

func TestAFullDiskMakesAnUpdateWait(t *testing.T) {
	live(t, func(r *rig) {
		r.OnPull("img:9", 0, errors.New("write /var/lib/containerd/x: no space left on device"))
		r.want(manifest("web", "img:1"))
		r.stopsNothing(func() {
			r.want(manifest("web", "img:9"))
			r.after(time.Hour)
		})
		r.updateWaits("no space left on device")
	})
}

// What has ended, or never came to run, has nothing to wait for.
func TestWhatDoesNotRunIsReplacedAtOnce(t *testing.T) {
	rows := []struct {
		name   string
		before func(r *rig)
	}{
		{"ended", func(r *rig) {
			r.Program("c", critest.ExitsAfter(time.Second, 0))
			r.want(manifest("web", "img:1", "restartPolicy: Never"))
			r.after(time.Minute)
		}},
		{"without its image", func(r *rig) {
			r.offline("img:8")
			r.want(manifest("web", "img:8"))
			r.after(time.Minute)
		}},
		{"without its image, another agent", func(r *rig) {
			r.offline("img:8")
			r.want(manifest("web", "img:8"))
			r.after(time.Minute)
			r.kill()
			r.start()
		}},
		{"not admitted", func(r *rig) { r.want(manifest("web", "img:1", "nodeSelector: {disk: ssd}")) }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			live(t, func(r *rig) {
				row.before(r)
				r.offline("img:9")
				r.want(manifest("web", "img:9"))
				r.after(40 * time.Second)
				w := r.status("default/web-n").ContainerStatuses[0].State.Waiting
				if p, _ := r.store.Pod("default/web-n"); p.Spec.Containers[0].Image != "img:9" || w == nil || !strings.Contains(w.Message, "no route to host") {
					r.Errorf("reported: %s %+v", p.Spec.Containers[0].Image, w)
				}
			})
		})
	}
}

// One that ends while another version waits makes way for it.
func TestAVersionThatEndsMakesWayForTheOneThatWaits(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		r.Program("c", critest.ExitsAfter(10*time.Minute, 0))
		r.want(manifest("web", "img:1", "restartPolicy: Never"))
		r.want(manifest("web", "img:9", "restartPolicy: Never"))
		r.after(5 * time.Minute)
		r.updateWaits(`image img:9`)
		r.after(6 * time.Minute)
		if p, _ := r.store.Pod("default/web-n"); p.Spec.Containers[0].Image != "img:9" {
			r.Errorf("reported: %s", p.Spec.Containers[0].Image)
		}
	})
}

// A pod that refers to what is not there waits for that.
func TestAnUpdateWaitsForWhatItRefersTo(t *testing.T) {
	live(t, func(r *rig) {
		next := strings.Replace(refers("web", "env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: k}}}]"), "img:1", "img:2", 1)
		r.want(manifest("web", "img:1"))
		r.stopsNothing(func() {
			r.want(next)
			r.after(time.Minute)
		})
		r.updateWaits(`configmap "settings" not found`)
		if waits, _ := r.waitEvents(); waits != 1 {
			r.Errorf("%d events", waits)
		}
		r.want(next, object("ConfigMap", "settings", "k: v"))
		r.after(10 * time.Second) // within which nothing but the object wakes the worker
		r.replaced("img:2")
	})
}

// A pod for another system never fits: its images are not pulled.
func TestAnUpdateForAnotherSystemIsNotPrepared(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		r.stopsNothing(func() {
			r.offer(manifest("web", "img:9", "os: {name: windows}"))
			r.after(time.Minute)
		})
		if n := r.Count("PullImage"); n > 0 {
			r.Errorf("%d pulls", n)
		}
		r.updateWaits("windows")
	})
}

// A pod whose container was started a moment ago runs on, too.
func TestAVersionThatHasJustStartedRunsOn(t *testing.T) {
	live(t, func(r *rig) {
		r.offline("img:9")
		edited := make(chan struct{})
		r.Fault(critest.On("StartContainer").Nth(1).After(func() {
			pods, _ := manifests.Decode("/m/0.yaml", []byte(manifest("web", "img:9")), r.options)
			r.offers <- manifests.Snapshot{Complete: true, Pods: pods}
			close(edited)
		}).HangAnswer())
		r.want(manifest("web", "img:1"))
		<-edited
		r.after(time.Minute)
		r.updateWaits(`image img:9`)
	})
}
