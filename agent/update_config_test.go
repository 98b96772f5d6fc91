package agent

import (
	"strings"
	"testing"
	"time"

	"monopod/cri/critest"
)

// A version of which no container can be made is found to be so before anything stops.
func TestAnUpdateWaitsWhoseContainersTheRuntimeCannotBeTold(t *testing.T) {
	const before = `- {name: c, image: "img:1"}`
	secret := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {key: AAEC}\n"
	for name, row := range map[string]struct {
		next  string
		says  string
		lacks []critest.Feature
	}{
		"as root, the container": {next: podOf("web", "containers:", `- {name: c, image: "img:1", securityContext: {runAsNonRoot: true}}`), says: "container has runAsNonRoot and image will run as root"},
		"as root, the pod":       {next: podOf("web", "securityContext: {runAsNonRoot: true}", "containers:", before), says: "container has runAsNonRoot and image will run as root"},
		"users of its own": {next: podOf("web", "hostUsers: false", "containers:", before), lacks: []critest.Feature{critest.UserNamespaces},
			says: "can't set `spec.hostUsers: false`, runtime does not support user namespaces"},
		"read-only in all parts": {next: podOf("web", "volumes: [{name: v}]", "containers:",
			`- {name: c, image: "img:1", volumeMounts: [{name: v, mountPath: /v, readOnly: true, recursiveReadOnly: Enabled}]}`), lacks: []critest.Feature{critest.RecursiveReadOnly},
			says: `volume "v" requested recursive read-only mode, but it is not supported by the runtime`},
		"a value of bytes": {next: podOf("web", "containers:", `- {name: c, image: "img:1", env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: key}}}]}`) + secret,
			says: "key key in Secret default/s has a NUL byte, which no variable can have"},
	} {
		t.Run(name, func(t *testing.T) {
			restartedWith(t, nil, row.lacks, func(r *rig) {
				r.want(podOf("web", "containers:", before))
				r.after(time.Minute)
				r.stopsNothing(func() {
					r.want(row.next)
					r.after(10 * time.Minute)
				})
				r.updateWaits(row.says)
			})
		})
	}
}

// What only the start determines is not asked for before, and an object that is mended ends the wait.
func TestAnUpdateWaitsForNothingThatOnlyItsStartDetermines(t *testing.T) {
	next := podOf("web", "volumes: [{name: v}]", "containers:", `- name: c
    image: "img:2"
    securityContext: {runAsNonRoot: true, runAsUser: 1}
    env:
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: FILE, valueFrom: {fileKeyRef: {volumeName: v, path: env, key: FILE}}}
    - {name: A, valueFrom: {secretKeyRef: {name: s, key: key}}}
    volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(IP)/$(FILE)}]`)
	secret := func(value string) string {
		return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {key: " + value + "}\n"
	}
	live(t, func(r *rig) {
		r.AddImage("img:2")
		r.want(podOf("web", "containers:", `- {name: c, image: "img:1"}`))
		r.after(time.Minute)
		r.want(next + secret("AAEC"))
		r.after(time.Minute)
		r.updateWaits("NUL byte")
		r.want(next + secret("eA=="))
		r.after(time.Minute)
		if w := r.containerStatus("default/web-n", "c").State.Waiting; w == nil || !strings.Contains(w.Message, "couldn't parse env file") {
			t.Errorf("it waits for %+v: not for the file, which nothing wrote", w)
		}
	})
}
