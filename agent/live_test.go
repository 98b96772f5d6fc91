package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"monopod/agent/config"
	"monopod/agent/overview"
	"monopod/cri/critest"
	"monopod/manifests"
)

// change makes other settings count, as a reloader does.
func (r *rig) change(with func(*config.Config)) {
	c := *r.settings.Load()
	with(&c)
	r.settings.Store(&c)
	r.sync.Wake()
	r.settle()
}

// A shorter back-off counts for who waits already.
func TestAShorterBackOffCountsAtOnce(t *testing.T) {
	live(t, func(r *rig) {
		r.Program("c", critest.Exits(1))
		r.want(manifest("web", "img:1"))
		r.after(6 * time.Minute)
		n := r.Count("StartContainer")
		r.after(10 * time.Second)
		if r.Count("StartContainer") != n {
			r.Fatal("it does not wait")
		}
		r.change(func(c *config.Config) { c.BackOffFirst, c.BackOffMax = time.Second, time.Second })
		r.after(3 * time.Second)
		if more := r.Count("StartContainer") - n; more < 2 {
			r.Errorf("started %d times in 3 s", more)
		}
	})
}

// A label, and room for one more pod, let those in that wait for it.
func TestMoreLabelsAndRoomLetPodsIn(t *testing.T) {
	rows := []struct {
		name, spec string
		before     func(*config.Config)
		after      func(*config.Config)
	}{
		{"a label", "nodeSelector: {disk: ssd}", func(*config.Config) {}, func(c *config.Config) { c.NodeLabels = map[string]string{"disk": "ssd"} }},
		{"room", "", func(c *config.Config) { c.MaxPods = 1 }, func(c *config.Config) { c.MaxPods = 2 }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			liveWith(t, func(r *rig) { r.configure = row.before }, func(r *rig) {
				r.want(manifest("a", "img:1"), manifest("web", "img:1", row.spec))
				r.after(time.Second)
				r.expect("default/a-n/c")
				r.change(row.after)
				r.after(time.Second)
				r.expect("default/a-n/c", "default/web-n/c")
			})
		})
	}
}

func TestFewerDeadContainersAreKeptAtOnce(t *testing.T) {
	liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.DeadContainers = 3 } }, func(r *rig) {
		r.want(manifest("web", "img:1"))
		for range 4 {
			r.after(6 * time.Minute)
			r.Exit("c", 1)
		}
		r.after(6 * time.Minute)
		if n := len(r.Containers()); n != 4 {
			r.Fatalf("%d containers", n)
		}
		r.change(func(c *config.Config) { c.DeadContainers = 1 })
		r.after(time.Second)
		if n := len(r.Containers()); n != 2 {
			r.Errorf("%d containers", n)
		}
	})
}

// Ready is who has seen the manifests and the runtime, once.
func TestReadyWhenAllWasSeen(t *testing.T) {
	liveWith(t, func(r *rig) { r.Stop() }, func(r *rig) {
		r.after(time.Second)
		if r.watch.Ready() == nil || r.sync.read() == nil {
			r.Error("ready before anything was seen")
		}
		r.offers <- manifests.Snapshot{}
		r.settle()
		if r.sync.read() == nil {
			r.Error("ready before the folder could be read")
		}
		r.offers <- manifests.Snapshot{Read: true}
		r.settle()
		if err := r.sync.read(); err != nil {
			r.Error(err)
		}
		if r.watch.Ready() == nil {
			r.Error("ready before the runtime answered")
		}
		r.Resume()
		r.after(time.Second)
		if err := r.watch.Ready(); err != nil {
			r.Error(err)
		}
		r.offers <- manifests.Snapshot{}
		r.Stop()
		r.after(time.Minute)
		if r.sync.read() != nil || r.watch.Ready() != nil {
			r.Error("what was seen once was not")
		}
	})
}

// What runs is said by the runtime, by names and images, not by manifests.
func TestListsWhatRuns(t *testing.T) {
	live(t, func(r *rig) {
		r.want("apiVersion: v1\nkind: Pod\nmetadata: {name: two}\nspec: {restartPolicy: Never, containers: [{name: b, image: 'img:2'}, {name: a, image: 'img:1'}]}\n",
			manifest("one", "img:1", "restartPolicy: Never"))
		r.after(time.Second)
		r.Exit("default/one-n/c", 0)
		r.after(time.Minute) // its sandbox ends, too
		r.Exit("default/two-n/b", 0)
		r.settle()
		pods, err := overview.Running(r.Context(), r.watch.Lister)
		if err != nil {
			r.Fatal(err)
		}
		var got []string
		for _, p := range pods {
			line := p.Namespace + "/" + p.Name
			for _, c := range p.Spec.Containers {
				line += fmt.Sprintf(" %s=%s", c.Name, c.Image)
			}
			if got = append(got, line); len(p.UID) != 32 {
				r.Errorf("uid %q", p.UID)
			}
		}
		if text := strings.Join(got, "|"); text != "default/two-n a=img:1" {
			r.Errorf("runs: %s", text)
		}
	})
}

// The service manager is told of readiness once each pod was looked at, also one that
// waits, and not before the runtime answered.
func TestStartedWhenEachPodWasLookedAt(t *testing.T) {
	liveWith(t, func(r *rig) { r.Stop() }, func(r *rig) {
		looked := func() error {
			return overview.LookedAt(r.store, r.sync.names(), r.sync.read(), r.watch.Ready())
		}
		s := manifests.Snapshot{Read: true, Complete: true}
		for _, doc := range []string{manifest("web", "img:1"), manifest("far", "img:1", "nodeSelector: {disk: ssd}")} {
			pods, _ := manifests.Decode("/m/"+doc, []byte(doc), r.options)
			s.Pods = append(s.Pods, pods...)
		}
		r.offers <- s
		r.after(time.Minute)
		if err := looked(); err == nil || !strings.Contains(err.Error(), "not been listed") {
			r.Errorf("without a runtime: %v", err)
		}
		r.Resume()
		r.after(2 * time.Minute)
		if err := looked(); err != nil {
			r.Error(err)
		}
		r.expect("default/web-n/c")
		r.store.RemovePod("default/far-n")
		if err := looked(); err == nil || err.Error() != "1 of 2 pods have not been looked at yet" {
			r.Errorf("without a look at one: %v", err)
		}
	})
}
