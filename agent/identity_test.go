package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/node"
)

// kept is a manifest with a volume, of which the arguments may be changed in place.
func kept(label, image string, cpus int, more ...string) string {
	doc := manifest("web", image, append([]string{"volumes: [{name: v, emptyDir: {}}]"}, more...)...)
	doc = strings.Replace(doc, "image:", fmt.Sprintf("resources: {requests: {cpu: %d}}, volumeMounts: [{name: v, mountPath: /v}], image:", cpus), 1)
	return strings.Replace(doc, "name: web", "name: web, labels: {v: "+label+"}", 1)
}

// A pod that is stopped is still the same pod: an edit that a running one would take in place
// leaves it its uid and its volumes, whenever it comes, and any other one does not.
func TestAStoppedPodIsTheSamePodAfterAnEditInPlace(t *testing.T) {
	first := kept("one", "img:1", 1)
	nextAgent := func(r *rig) { r.kill(); r.start() }
	afterBoot := func(r *rig) { r.kill(); r.reboot(); r.start() }
	edit := func(doc string) func(*rig) { return func(r *rig) { r.want(doc) } }
	start := func(r *rig) { r.starts("web") }
	stop := func(r *rig) { r.stops("web") }
	for _, row := range []struct {
		name  string
		steps []func(*rig)
		last  string // what its manifest says in the end
		other bool   // it is another pod then
	}{
		{"a label", []func(*rig){edit(kept("two", "img:1", 1))}, kept("two", "img:1", 1), false},
		{"an image", []func(*rig){edit(kept("one", "img:2", 1))}, kept("one", "img:2", 1), false},
		{"its cpu", []func(*rig){edit(kept("one", "img:1", 2))}, kept("one", "img:1", 2), false},
		{"one edit after the other", []func(*rig){edit(kept("two", "img:1", 1)), edit(kept("two", "img:2", 2))}, kept("two", "img:2", 2), false},
		{"there and back", []func(*rig){edit(kept("one", "img:1", 1, "hostname: other")), edit(first)}, first, false},
		{"before another agent starts it", []func(*rig){edit(kept("two", "img:2", 1)), nextAgent}, kept("two", "img:2", 1), false},
		{"and after a reboot", []func(*rig){edit(kept("two", "img:2", 1)), afterBoot}, kept("two", "img:2", 1), false},
		{"while no agent runs", []func(*rig){nextAgent}, kept("two", "img:2", 1), false},
		{"while the machine is off", []func(*rig){afterBoot}, kept("two", "img:2", 1), false},
		{"an edit that waits for its room, and one that has it", []func(*rig){edit(kept("one", "img:1", 9)), start, nextAgent, edit(kept("one", "img:1", 9)), afterBoot, edit(kept("two", "img:2", 9))}, kept("two", "img:2", 2), false},
		{"stopped twice", []func(*rig){edit(kept("two", "img:1", 1)), start, stop, edit(kept("three", "img:1", 1)), nextAgent}, kept("three", "img:2", 1), false},

		{"another host name", []func(*rig){edit(kept("one", "img:1", 1, "hostname: other"))}, kept("one", "img:1", 1, "hostname: other"), true},
		{"another host name while no agent runs", []func(*rig){nextAgent}, kept("one", "img:1", 1, "hostname: other"), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			liveOn(t, func(f *node.Facts) { f.Allocatable = amounts("cpu", "2", "pods", "110") }, func(r *rig) {
				r.boot.ID = "one"
				r.want(first)
				r.after(time.Minute)
				uid := r.uid()
				file := r.scribble(uid)
				r.stops("web")
				r.after(time.Minute)
				for _, do := range row.steps {
					do(r)
					r.after(time.Minute)
				}
				r.want(row.last)
				r.after(time.Minute)
				if len(r.sync.holds.State().Stopped) > 0 {
					r.starts("web")
				}
				r.after(time.Minute)
				r.expect("default/web-n/c")
				_, err := os.Stat(file)
				if is := r.uid(); (is != uid) != row.other || (err != nil) != row.other {
					r.Errorf("the uid was %s and is %s; what it wrote: %v", uid, is, err)
				}
			})
		})
	}
}

// uid is that of the pod, as it is reported.
func (r *rig) uid() string {
	r.Helper()
	p, ok := r.store.Pod("default/web-n")
	if !ok {
		r.Fatal("it is not reported")
	}
	return string(p.UID)
}

// A pod that is stopped while it waits for its turn has what it had before the boot.
func TestAPodThatIsStoppedBeforeItsTurnKeepsItsVolumes(t *testing.T) {
	live(t, func(r *rig) {
		r.boot = checkpoint.Boot{ID: "one", Since: time.Now()}
		db := manifest("db", "img:1")
		web := strings.Replace(kept("one", "img:1", 0), "labels:", "annotations: {monopod.start-after: db}, labels:", 1)
		r.want(db, web)
		r.after(time.Minute)
		file := r.scribble(r.uid())
		r.stops("db")
		r.kill()
		r.reboot()
		r.start()
		r.want(db, web)
		r.after(time.Minute)
		r.expect()
		r.stops("web")
		r.after(time.Minute)
		r.starts("db")
		r.starts("web")
		r.after(time.Minute)
		r.expect("default/db-n/c", "default/web-n/c")
		if _, err := os.Stat(file); err != nil {
			r.Error(err)
		}
	})
}
