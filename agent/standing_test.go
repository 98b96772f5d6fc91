package agent

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"monopod/agent/config"
	"monopod/cri/critest"
)

// restless is a pod of which something starts, is killed or is made again each few seconds.
const restless = `
apiVersion: v1
kind: Pod
metadata:
  name: restless
  annotations: {monopod.backoff-first: 1s, monopod.backoff-max: 5s}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: v, emptyDir: {}}]
  containers:
  - {name: crash, image: "img:1", volumeMounts: [{name: v, mountPath: /v}]}
  - name: sick
    image: "img:1"
    livenessProbe: {exec: {command: [live]}, periodSeconds: 1, failureThreshold: 1}
    lifecycle: {postStart: {exec: {command: [post]}}, preStop: {exec: {command: [pre]}}}
`

// Trouble of a disk lasts for as long as it does, and the log has other readers: what a
// pod cannot have written or removed is said once, not with each of its restarts.
func TestTroubleThatLastsIsSaidOnce(t *testing.T) {
	for _, how := range []string{diskReadOnly, diskFull} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			d, ok := mountDisk(dir)
			if !ok {
				t.Skip("no disk can be mounted: run this as root")
			}
			defer func() { noErr(t, d.unmount()) }()
			synctest.Test(t, func(t *testing.T) {
				r := &rig{T: t, Runtime: critest.New(t), dir: d.root, kept: filepath.Join(dir, "kept"), log: &lines{}}
				r.links = filepath.Join(d.root, "links") // as read-only as the rest
				r.configure = func(c *config.Config) { c.PodLogs = filepath.Join(dir, "logs") }
				noErr(t, os.MkdirAll(r.links, 0o700))
				r.AddImage("img:1", "img:2")
				r.OnExec(func(_ context.Context, _ critest.Container, command []string) (string, int32, error) {
					if command[0] == "live" {
						return "", 1, nil
					}
					return "", 0, nil
				})
				r.Program("crash", critest.ExitsAfter(time.Second, 1))
				r.start()
				defer func() { r.stop() }()
				r.want(restless, manifest("leaves", "img:1"))
				r.after(time.Minute)
				noErr(t, d.spoil(how))
				said := len(r.log.String())
				r.want(restless, manifest("new", "img:1"))
				r.after(20 * time.Minute)
				counts := complaints(r.log.String()[said:])
				for _, what := range slices.Sorted(maps.Keys(counts)) {
					if n := counts[what]; n > 2 { // a full disk has room for a moment now and then
						t.Errorf("said %d times in 20 minutes: %s", n, what)
					}
				}
			})
		})
	}
}

// attrs are what differs in two lines of the same trouble.
var attrs = regexp.MustCompile(`time=\S+ |[0-9a-f]{8,}|attempt=\d+`)

// complaints counts the warnings and errors of a log, but for those of probes.
func complaints(log string) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(log) {
		if strings.Contains(line, `msg="probe fails"`) {
			continue // each is why a container was killed
		}
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			counts[strings.TrimSpace(attrs.ReplaceAllString(line, "-"))]++
		}
	}
	return counts
}
