//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// reasons are those that must be told of a pod.
type reasons struct {
	pod  string
	want []string
}

func tellsWhatHappened(w *world) {
	w.start()
	w.write("crash", `
  hostNetwork: true
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sh, -c, "exit 3"]}
`)
	w.write("sick", `
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sleep, "3600"], env: [{name: WORD, value: geheimnis}], livenessProbe: {exec: {command: [sh, -c, "echo $(WORD); false"]}, periodSeconds: 1, failureThreshold: 2}}
`)
	w.write("absent", `
  hostNetwork: true
  containers:
  - {name: main, image: "registry.test/absent:1", imagePullPolicy: Never}
`)
	all := []reasons{
		{"crash", []string{"Pulled", "Created", "Started", "BackOff"}},
		{"sick", []string{"Pulled", "Created", "Started", "Unhealthy", "Killing"}},
		{"absent", []string{"ErrImageNeverPull", "Failed"}},
	}
	for _, r := range all {
		w.until("/events tells of "+r.pod, func() error {
			code, body, err := w.agent.Get(w.Context(), "/events?pod="+w.ns+"/"+name(r.pod))
			var list v1.EventList
			if err == nil {
				err = json.Unmarshal([]byte(body), &list)
			}
			if err != nil || code != 200 {
				return fmt.Errorf("%d %s: %v", code, body, err)
			}
			return r.in(list.Items)
		})
	}
	w.until("status/events.jsonl tells the same", func() error { return w.inFile(all) })
	w.describes(all, 0)
	w.kill()
	check(w.T, w.inFile(all))
	w.describes(all, 3) // from the files
	w.start()
	w.describes(all, 0)
	out, err := w.agent.CLI(w.Context(), "events", "sick")
	check(w.T, err)
	if !strings.Contains(out, "Liveness probe failed: geheimnis") || strings.Contains(out, "crash") {
		w.Errorf("monopod events sick:\n%s", out)
	}
}

// in returns nil if the events have all the reasons.
func (r reasons) in(all []v1.Event) error {
	for _, want := range r.want {
		if !slices.ContainsFunc(all, func(e v1.Event) bool { return e.InvolvedObject.Name == name(r.pod) && e.Reason == want }) {
			return fmt.Errorf("nothing of %s with reason %s in %+v", r.pod, want, all)
		}
	}
	return nil
}

// inFile looks into the file of events.
func (w *world) inFile(all []reasons) error {
	data, err := os.ReadFile(filepath.Join(w.agent.Root, "status", "events.jsonl"))
	if err != nil {
		return err
	}
	var events []v1.Event
	for line := range bytes.Lines(data) {
		var e v1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		events = append(events, e)
	}
	for _, r := range all {
		if err := r.in(events); err != nil {
			return err
		}
	}
	return nil
}

// describes looks at what `monopod describe` prints of each pod, and with which
// exit code.
func (w *world) describes(all []reasons, code int) {
	w.Helper()
	for _, r := range all {
		out, err := w.agent.CLI(w.Context(), "describe", r.pod, "--root", w.agent.Root)
		var exit *exec.ExitError
		if ended := errors.As(err, &exit); ended && exit.ExitCode() != code || !ended && (err != nil || code != 0) {
			w.Errorf("monopod describe %s: %v, want code %d", r.pod, err, code)
		}
		for _, want := range append([]string{name(r.pod), filepath.Join(w.agent.Manifests, r.pod+".yaml")}, r.want...) {
			if !strings.Contains(out, want) {
				w.Errorf("monopod describe %s does not show %s:\n%s", r.pod, want, out)
			}
		}
	}
}
