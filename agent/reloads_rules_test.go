package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"monopod/cri/critest"
)

// told is a pod with one container that runs a command when its ConfigMap m changes.
const told = `apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {monopod.on-config-change: 'exec:reload now'}}
spec:
  volumes: [{name: v, configMap: {name: m}}]
  containers:
  - {name: a, image: 'img:1', volumeMounts: [{name: v, mountPath: /v}]}
`

func mIs(value string) string { return object("ConfigMap", "m", "a: "+value) }

// A failure is no longer said once nothing is tried again, as the change was taken back.
func TestReloadTakenBackWhileItFails(t *testing.T) {
	live(t, func(r *rig) {
		x := &reloads{}
		x.listen(r)
		x.breaks(errors.New("no such file"))
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(5 * time.Minute)
		x.breaks(nil)
		r.want(told, mIs("one"))
		r.after(time.Hour)
		if words := r.words("default/web-n"); words != "" {
			t.Errorf("an hour later at %s it says %q", time.Now().UTC().Format(time.TimeOnly), words)
		}
	})
}

// As before, but the annotation goes.
func TestReloadAnnotationGoesWhileItFails(t *testing.T) {
	live(t, func(r *rig) {
		x := &reloads{}
		x.listen(r)
		x.breaks(errors.New("no such file"))
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(5 * time.Minute)
		x.breaks(nil)
		r.want(strings.Replace(told, ", annotations: {monopod.on-config-change: 'exec:reload now'}", "", 1), mIs("two"))
		r.after(time.Hour)
		x.expect(r, "without the annotation")
		if words := r.words("default/web-n"); words != "" {
			t.Errorf("an hour later at %s it says %q", time.Now().UTC().Format(time.TimeOnly), words)
		}
	})
}

// A command may have taken effect though it failed: what it read then is not what is there now.
func TestReloadTakenBackAfterACommandThatReadItAndFailed(t *testing.T) {
	live(t, func(r *rig) {
		runs := "one"
		fails := true
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
			runs = r.shown("a")
			if fails {
				return "reloaded, but with warnings", 1, nil
			}
			return "", 0, nil
		})
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(5 * time.Minute)
		fails = false
		r.want(told, mIs("one"))
		r.after(time.Hour)
		if shown := r.shown("a"); runs != shown {
			t.Errorf("the program runs with %s, its volume shows %s", runs, shown)
		}
	})
}

// As before, but the agent is killed while the command runs, and the change is taken back before the next agent.
func TestReloadTakenBackWhileNoAgentRunsAfterAKill(t *testing.T) {
	live(t, func(r *rig) {
		runs := "one"
		hangs := true
		r.OnExec(func(ctx context.Context, _ critest.Container, _ []string) (string, int32, error) {
			runs = r.shown("a")
			if hangs {
				<-ctx.Done()
			}
			return "", 0, nil
		})
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(5 * time.Second)
		r.kill()
		hangs = false
		r.start()
		r.want(told, mIs("one"))
		r.after(time.Hour)
		if shown := r.shown("a"); runs != shown {
			t.Errorf("the program runs with %s, its volume shows %s", runs, shown)
		}
	})
}

// Under a hold no next try is promised.
func TestReloadAHoldWhileItFails(t *testing.T) {
	live(t, func(r *rig) {
		x := &reloads{}
		x.listen(r)
		x.breaks(errors.New("no such file"))
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(5 * time.Minute)
		r.holds("web", "audit", "")
		r.after(time.Minute)
		x.breaks(errors.New("no such file"))
		r.after(time.Hour)
		x.expect(r, "while it is held")
		if words := r.words("default/web-n"); strings.Contains(words, "next try at") {
			t.Errorf("at %s it says %q", time.Now().UTC().Format(time.TimeOnly), words)
		}
	})
}

// A key that another container's volume lacks keeps no container from being told.
func TestReloadAnotherContainersVolumeLacksAKey(t *testing.T) {
	live(t, func(r *rig) {
		pod := strings.Replace(told, "volumes: [", "volumes: [{name: w, configMap: {name: other, items: [{key: k, path: k}]}}, ", 1) +
			"  - {name: b, image: 'img:1', volumeMounts: [{name: w, mountPath: /w}]}\n"
		x := &reloads{}
		x.listen(r)
		r.want(pod, mIs("one"), object("ConfigMap", "other", "k: one"))
		r.after(time.Minute)
		x.breaks(nil)
		r.want(pod, mIs("one"), object("ConfigMap", "other", "l: one"))
		r.after(time.Minute)
		x.breaks(nil)
		r.want(pod, mIs("two"), object("ConfigMap", "other", "l: one"))
		r.after(time.Hour)
		t.Logf("events:\n%s", r.edits("web-n"))
		t.Logf("words: %s", r.words("default/web-n"))
		t.Logf("shown: %s", r.shown("a"))
		x.expect(r, "after a change", "a: reload now sees two")
	})
}

// A key that a variable of the container lacks keeps it from no reload, as that is no start.
func TestReloadAVariableLacksAKey(t *testing.T) {
	live(t, func(r *rig) {
		pod := strings.Replace(told, "volumeMounts:", "env: [{name: E, valueFrom: {secretKeyRef: {name: s, key: k}}}], volumeMounts:", 1)
		x := &reloads{}
		x.listen(r)
		r.want(pod, mIs("one"), object("Secret", "s", "k: one"))
		r.after(time.Minute)
		r.want(pod, mIs("two"), object("Secret", "s", "l: one"))
		r.after(time.Hour)
		t.Logf("events:\n%s", r.edits("web-n"))
		t.Logf("words: %s", r.words("default/web-n"))
		t.Logf("shown: %s", r.shown("a"))
		x.expect(r, "after a change", "a: reload now sees two")
	})
}

// What waits is said of both containers.
func TestReloadAHoldOfARestartAndAReload(t *testing.T) {
	live(t, func(r *rig) {
		pod := strings.Replace(told, "annotations: {", "annotations: {monopod.on-config-change/b: restart, ", 1) +
			"  - {name: b, image: 'img:1', volumeMounts: [{name: v, mountPath: /v}]}\n"
		r.want(pod, mIs("one"))
		r.after(time.Minute)
		r.holds("web", "audit", "")
		r.want(pod, mIs("two"))
		r.after(time.Minute)
		if words := r.words("default/web-n"); !strings.Contains(words, "restart with the changed") {
			t.Errorf("it says %q", words)
		}
	})
}

// A command that is mended is run at once, as what failed of another version is no reason to wait.
func TestReloadAMendedCommandOfAPodThatFailed(t *testing.T) {
	live(t, func(r *rig) {
		var all []string
		r.OnExec(func(_ context.Context, _ critest.Container, command []string) (string, int32, error) {
			all = append(all, strings.Join(command, " "))
			if command[0] == "reload" {
				return "", 127, nil
			}
			return "", 0, nil
		})
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(30 * time.Minute)
		all = nil
		r.want(strings.Replace(told, "exec:reload now", "exec:mended", 1), mIs("two"))
		r.after(5 * time.Second)
		if got := strings.Join(all, "|"); got != "mended" {
			t.Errorf("it ran %q; it says %q", got, r.words("default/web-n"))
		}
		r.after(2 * time.Minute)
		if got := strings.Join(all, "|"); got != "mended" {
			t.Errorf("then it ran %q; it says %q", got, r.words("default/web-n"))
		}
	})
}

// A change that is taken back while the command runs, which fails: it has read what is no more.
func TestReloadTakenBackWhileTheCommandRuns(t *testing.T) {
	live(t, func(r *rig) {
		runs := "one"
		r.OnExec(func(ctx context.Context, _ critest.Container, _ []string) (string, int32, error) {
			runs = r.shown("a")
			<-ctx.Done() // it waits for what never comes
			return "", 0, ctx.Err()
		})
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(10 * time.Second)
		r.want(told, mIs("one"))
		r.after(time.Hour)
		if shown := r.shown("a"); runs != shown {
			t.Errorf("the program runs with %s, its volume shows %s", runs, shown)
		}
	})
}

// What was mended while the container was told anew starts to count from the beginning.
func TestReloadTheSameChangeAgainLater(t *testing.T) {
	live(t, func(r *rig) {
		var tries atomic.Int32
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
			tries.Add(1)
			return "", 1, nil
		})
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(30 * time.Minute)
		r.want(told, mIs("one"))
		r.after(30 * time.Minute)
		tries.Store(0)
		r.want(told, mIs("two"))
		r.after(30 * time.Second)
		if n := tries.Load(); n < 3 {
			t.Errorf("%d tries in the first 30 s of another change", n)
		}
	})
}

// A container that was told of two, and is to restart for changes from now on, does so for one.
func TestReloadToldThenRestartWithWhatItStartedWith(t *testing.T) {
	live(t, func(r *rig) {
		runs := "one"
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
			runs = r.shown("a")
			return "", 0, nil
		})
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(time.Minute)
		r.want(strings.Replace(told, "'exec:reload now'", "restart", 1), mIs("one"))
		r.after(10 * time.Minute)
		if n := r.status("default/web-n").ContainerStatuses[0].RestartCount; n == 0 && runs != r.shown("a") {
			t.Errorf("it was not restarted and runs with %s, its volume shows %s", runs, r.shown("a"))
		}
	})
}

// What a runtime says at length fills neither ps nor an event.
func TestReloadALongError(t *testing.T) {
	live(t, func(r *rig) {
		x := &reloads{}
		x.listen(r)
		x.breaks(errors.New(strings.Repeat("long line of trouble\n", 10000)))
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(time.Minute)
		if n := len(r.words("default/web-n")); n > 4096 {
			t.Errorf("ps says %d bytes", n)
		}
		for _, line := range r.happened("web-n") {
			if len(line) > 4096 {
				t.Errorf("an event has %d bytes", len(line))
			}
		}
		if !strings.Contains(r.words("default/web-n"), "next try at") {
			t.Errorf("when it is tried again is not said: %d bytes", len(r.words("default/web-n")))
		}
		if n := strings.Count(r.words("default/web-n"), "\n"); n > 0 {
			t.Errorf("ps says %d lines", n)
		}
	})
}

// The object's key goes while the reload fails: nothing is tried any more, and nothing says that it is.
func TestReloadTheObjectGoesWhileItFails(t *testing.T) {
	live(t, func(r *rig) {
		pod := strings.Replace(told, "configMap: {name: m}", "configMap: {name: m, items: [{key: a, path: a}]}", 1)
		x := &reloads{}
		x.listen(r)
		x.breaks(errors.New("no such file"))
		r.want(pod, mIs("one"))
		r.after(time.Minute)
		r.want(pod, mIs("two"))
		r.after(5 * time.Minute)
		r.want(pod, object("ConfigMap", "m", "b: two"))
		r.after(10 * time.Second)
		x.breaks(errors.New("no such file"))
		r.after(time.Hour)
		if n, words := x.breaks(nil), r.words("default/web-n"); n == 0 && strings.Contains(words, "next try at") {
			t.Errorf("no try in an hour, and at %s it says %q", time.Now().UTC().Format(time.TimeOnly), words)
		}
	})
}

// A containerd names each command by an id of its own: a command that fails is one event and one line all the same.
func TestReloadErrorsWithIds(t *testing.T) {
	live(t, func(r *rig) {
		n := 0
		r.OnExec(func(context.Context, critest.Container, []string) (string, int32, error) {
			n++
			return "", 0, fmt.Errorf(`failed to exec in container: failed to start exec "%064x": OCI runtime exec failed: exec failed: unable to start container process: exec: "reload": executable file not found in $PATH: unknown`, n*7919)
		})
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(10 * time.Hour)
		events := 0
		for _, line := range r.happened("web-n") {
			if strings.Contains(line, "FailedReload") {
				events++
			}
		}
		lines := strings.Count(r.log.String(), "container is not told of its changed config")
		if events > 20 || lines > 20 {
			t.Errorf("%d tries in ten hours are %d events and %d lines of the log", n, events, lines)
		}
	})
}

// A hold is said of all that waits: a reload that comes first hides no restart.
func TestReloadAHoldNamesEachObject(t *testing.T) {
	live(t, func(r *rig) {
		pod := strings.Replace(told, "annotations: {", "annotations: {monopod.on-config-change/b: restart, ", 1) +
			"  - {name: b, image: 'img:1', envFrom: [{configMapRef: {name: e}}]}\n"
		r.want(pod, mIs("one"), object("ConfigMap", "e", "v: one"))
		r.after(time.Minute)
		r.holds("web", "audit", "")
		r.want(pod, mIs("two"), object("ConfigMap", "e", "v: two"))
		r.after(time.Minute)
		if words := r.words("default/web-n"); !strings.Contains(words, `ConfigMap "e"`) {
			t.Errorf("it says %q", words)
		}
	})
}

// Of a command that does not end it is said that it does not, and always the same.
func TestReloadWhatIsSaidOfACommandThatNeverEnds(t *testing.T) {
	live(t, func(r *rig) {
		r.OnExec(func(ctx context.Context, _ critest.Container, _ []string) (string, int32, error) {
			<-ctx.Done()
			return "", 0, ctx.Err()
		})
		r.want(told, mIs("one"))
		r.after(time.Minute)
		r.want(told, mIs("two"))
		r.after(10 * time.Minute)
		var texts []string
		for _, line := range r.happened("web-n") {
			if strings.Contains(line, "FailedReload") {
				texts = append(texts, line)
			}
		}
		lines := strings.Count(r.log.String(), "container is not told of its changed config")
		if len(texts) != 1 || lines != 1 || strings.Contains(texts[0], "no answer") {
			t.Errorf("%d lines of the log, and the events %s", lines, strings.Join(texts, "\n"))
		}
	})
}
