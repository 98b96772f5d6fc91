package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"monopod/cri/critest"
)

// reloading is a pod whose container a runs a command when its ConfigMap changes, and b restarts.
const reloading = `apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {monopod.on-config-change: 'exec:reload now', monopod.on-config-change/b: restart}}
spec:
  volumes: [{name: v, configMap: {name: m}}]
  containers:
  - {name: a, image: 'img:1', volumeMounts: [{name: v, mountPath: /v}]}
  - {name: b, image: 'img:1', envFrom: [{configMapRef: {name: e}}]}
  - {name: c, image: 'img:1', env: [{name: C, value: c}]}
`

// reloads records what is run in containers, and what their volumes show then. broken: it fails.
type reloads struct {
	mu     sync.Mutex
	told   []string
	broken error
}

// breaks makes commands fail from now on, or succeed with nil. It returns how many were run.
func (x *reloads) breaks(err error) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := len(x.told)
	x.told, x.broken = nil, err
	return was
}

func (x *reloads) listen(r *rig) {
	r.OnExec(func(_ context.Context, c critest.Container, command []string) (string, int32, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.told = append(x.told, fmt.Sprintf("%s: %s sees %s", c.Config.Metadata.Name, strings.Join(command, " "), r.shown("a")))
		return "its output", 0, x.broken
	})
}

func (x *reloads) expect(r *rig, what string, want ...string) {
	r.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if got, want := strings.Join(x.told, "\n"), strings.Join(want, "\n"); got != want {
		r.Errorf("%s: it was told\n%s\nwant\n%s", what, got, want)
	}
	x.told = nil
}

// A container that asks for it is told of a change that its volumes show, once, also if the change
// came while no agent ran; it is not restarted.
func TestContainersAreToldOfChangedConfig(t *testing.T) {
	live(t, func(r *rig) {
		x := &reloads{}
		x.listen(r)
		m := func(value string) string { return object("ConfigMap", "m", "a: "+value) }
		e := object("ConfigMap", "e", "v: one")
		r.want(reloading, m("one"), e)
		r.after(time.Minute)
		x.expect(r, "at first")
		r.want(reloading, m("two"), e)
		r.after(time.Minute)
		x.expect(r, "after a change", "a: reload now sees two")
		if got := strings.Join(r.happened("web-n"), "\n"); !strings.Contains(got, `Reloaded spec.containers{a}: Told container a of its changed config: reload now: ConfigMap "m" has changed`) {
			t.Errorf("events %s", got)
		}
		r.kill()
		r.start()
		r.want(reloading, m("two"), e)
		r.after(time.Minute)
		x.expect(r, "under the next agent")
		r.stop()
		r.start()
		r.want(reloading, m("three"), e)
		r.after(time.Minute)
		x.expect(r, "after a change while no agent ran", "a: reload now sees three")
		r.want(reloading, m("one"), e)
		r.after(time.Minute)
		x.expect(r, "after it was taken back", "a: reload now sees one")
		r.want(reloading, m("one"), object("ConfigMap", "e", "v: two"))
		r.after(time.Minute)
		x.expect(r, "after a change for another container")
		r.want(strings.Replace(reloading, "exec:reload now", "restart", 1), m("one"), object("ConfigMap", "e", "v: two"))
		r.after(time.Minute)
		x.expect(r, "another reaction to what was told")
		got := ""
		for _, c := range r.status("default/web-n").ContainerStatuses {
			got += fmt.Sprintf("%s%d ", c.Name, c.RestartCount)
		}
		if got != "a0 b1 c0 " {
			t.Errorf("restarts %s", got)
		}
	})
}

// A command that fails is run again until it succeeds, ever more rarely, and the pod says so.
func TestAContainerThatIsNotToldIsToldLater(t *testing.T) {
	live(t, func(r *rig) {
		x := &reloads{}
		x.listen(r)
		x.breaks(errors.New("no such file"))
		m := func(value string) string { return object("ConfigMap", "m", "a: "+value) }
		e := object("ConfigMap", "e", "v: one")
		r.want(reloading, m("one"), e)
		r.after(time.Minute)
		r.want(reloading, m("two"), e)
		r.after(10 * time.Minute)
		words := r.words("default/web-n")
		if !strings.Contains(words, "container a is not told of its changed config by reload now: ") || !strings.Contains(words, "no such file; next try at 20") {
			t.Errorf("it says %q", words)
		}
		if tries := x.breaks(nil); tries < 3 || tries > 40 {
			t.Errorf("%d tries in ten minutes", tries)
		}
		r.after(5 * time.Minute)
		x.expect(r, "once it works", "a: reload now sees two")
		if words := r.words("default/web-n"); words != "" {
			t.Errorf("it says %q", words)
		}
	})
}

// A hold keeps a container from being told, too, and says so.
func TestAHeldPodIsNotToldOfChangedConfig(t *testing.T) {
	live(t, func(r *rig) {
		x := &reloads{}
		x.listen(r)
		m := func(value string) string { return object("ConfigMap", "m", "a: "+value) }
		e := object("ConfigMap", "e", "v: one")
		r.want(reloading, m("one"), e)
		r.after(time.Minute)
		r.holds("web", "audit", "")
		r.want(reloading, m("two"), e)
		r.after(10 * time.Minute)
		x.expect(r, "while it is held")
		if words := r.words("default/web-n"); !strings.Contains(words, `reload with the changed ConfigMap "m" waits: held: audit`) {
			t.Errorf("it says %q", words)
		}
		r.releases("web")
		r.after(time.Minute)
		x.expect(r, "once it is released", "a: reload now sees two")
	})
}
