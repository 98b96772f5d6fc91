package agent

import (
	"strings"
	"testing"
	"time"
)

// usesSecret is a manifest of a pod that has a variable of the Secret s.
func usesSecret() string {
	return refers("web", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: a}}}]")
}

// edits returns what the events say of objects that have changed.
func (r *rig) edits(name string) string {
	r.Helper()
	var all []string
	for _, line := range r.happened(name) {
		if strings.Contains(line, "ObjectChanged") {
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n")
}

func TestAnEditOfAnObjectSaysWhatItMeansToAPod(t *testing.T) {
	live(t, func(r *rig) {
		pod := refers("web", "env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}], volumeMounts: [{name: v, mountPath: /v}]",
			"volumes: [{name: v, configMap: {name: m}}]")
		bystander := refers("other", "envFrom: [{secretRef: {name: other}}]")
		others := object("Secret", "other", "a: b")
		r.want(pod, object("ConfigMap", "m", "a: value1"), bystander, others)
		r.want(pod, object("ConfigMap", "m", "a: value2"), bystander, others)
		r.after(time.Minute)
		const event = `Normal ObjectChanged: changed: ConfigMap "m": volumes follow; container c has the former value until it restarts`
		if got := r.edits("web-n"); got != event {
			t.Errorf("events %s", got)
		}
		const note = `container c has former values of ConfigMap "m" until it restarts`
		says := func(when string, want bool) {
			t.Helper()
			if got := r.words("default/web-n"); strings.Contains(got, note) != want {
				t.Errorf("%s: it says %q", when, got)
			}
		}
		says("after the edit", true)
		r.want(pod, object("ConfigMap", "m", "a: value1"), bystander, others)
		says("after the edit was undone", false)
		r.want(pod, object("ConfigMap", "m", "a: value3"), bystander, others)
		says("after another edit", true)
		r.Exit("default/web-n/c", 1)
		r.after(time.Minute)
		says("after a restart", false)
		if got := r.edits("other-n"); got != "" || r.words("default/other-n") != "" {
			t.Errorf("of another pod: %s, %q", got, r.words("default/other-n"))
		}
	})
}

func TestAKeyThatIsGoneIsToldBeforeTheContainerRestarts(t *testing.T) {
	live(t, func(r *rig) {
		r.want(usesSecret(), object("Secret", "s", "a: hunter1"))
		r.want(usesSecret(), object("Secret", "s", "b: hunter2"))
		r.after(time.Minute)
		if got := r.edits("web-n"); !strings.HasPrefix(got, "Warning ObjectChanged: ") || !strings.HasSuffix(got, "; its next start would fail: key a is gone") || strings.Contains(got, "hunter") {
			t.Errorf("events %s", got)
		}
		const note = "container c: its next start would fail: couldn't find key a in Secret default/s"
		says := func(when string, want bool) {
			t.Helper()
			if got := r.words("default/web-n"); strings.Contains(got, note) != want {
				t.Errorf("%s: it says %q", when, got)
			}
		}
		says("after the edit", true)
		r.kill()
		r.start()
		r.want(usesSecret(), object("Secret", "s", "b: hunter2"))
		r.after(time.Minute)
		says("of the next agent", true)
		r.want(usesSecret(), object("Secret", "s", "a: hunter1"))
		r.after(time.Minute)
		says("when it is there again", false)
		if strings.Contains(r.log.String(), "hunter") {
			t.Error("a Secret's value is in the log")
		}
		r.expect("default/web-n/c")
	})
}

// What a container could not start without came before it started.
func TestAContainerThatWaitedForAnObjectHasNoFormerValues(t *testing.T) {
	live(t, func(r *rig) {
		r.Takes("RunPodSandbox", 4*time.Second)
		r.want(usesSecret())
		r.want(usesSecret(), object("Secret", "s", "a: hunter1")) // while the sandbox is made
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if got := r.words("default/web-n") + r.edits("web-n"); got != "" {
			t.Errorf("it says %q", got)
		}
		const note = `container c has former values of Secret "s" until it restarts`
		r.want(usesSecret(), object("Secret", "s", "b: hunter2"))
		r.want(usesSecret(), object("Secret", "s", "a: hunter3"))
		r.after(time.Minute)
		if got := r.words("default/web-n"); !strings.Contains(got, note) {
			t.Errorf("after the key was gone and came back with another value: it says %q", got)
		}
	})
}

func TestAContainerThatRestartsForAnEditHasNoFormerValues(t *testing.T) {
	live(t, func(r *rig) {
		r.want(annotated(usesSecret()), object("Secret", "s", "a: hunter1"))
		r.want(annotated(usesSecret()), object("Secret", "s", "a: hunter2"))
		r.after(time.Minute)
		if got := r.edits("web-n"); got != `Normal ObjectChanged: changed: Secret "s": container c restarts with it, once no hold, update window or lock keeps that away` {
			t.Errorf("events %s", got)
		}
		if got := r.words("default/web-n"); strings.Contains(got, "former") {
			t.Errorf("it says %q", got)
		}
	})
}
