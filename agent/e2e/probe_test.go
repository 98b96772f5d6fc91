//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// health answers gRPC health checks.
const health = "registry.test/health:1"

// patient is a container that is asked by a probe of one type.
type patient struct {
	name, image, command, probe string
	says                        string // why it is not ready; "": it is
}

// patients returns a pod's spec; the kind of probe is readiness or the like.
func patients(kind, spec string, all []patient) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  terminationGracePeriodSeconds: 1\n  dnsPolicy: Default\n%s  containers:\n", spec)
	for _, p := range all {
		image := p.image
		if image == "" {
			image = "registry.test/busybox:1"
		}
		fmt.Fprintf(&b, "  - {name: %s, image: %q, command: %s, %sProbe: {%s, periodSeconds: 1}}\n", p.name, image, p.command, kind, p.probe)
	}
	return b.String()
}

const (
	waits = `[sh, -c, "trap 'exit 0' TERM; sleep 3600 & wait"]`
	web   = `[sh, -c, "trap 'exit 0' TERM; mkdir /www; echo hello > /www/index.html; httpd -f -p %d -h /www & wait"]`
)

func tellsWhoIsReady(w *world) {
	check(w.T, w.rig.PushProgram("health", health))
	w.start()
	well := []patient{
		{name: "exec", command: waits, probe: "exec: {command: [test, -d, /tmp]}"},
		{name: "http", command: fmt.Sprintf(web, 8080), probe: "httpGet: {port: 8080, path: /index.html}"},
		{name: "tcp", command: fmt.Sprintf(web, 8081), probe: "tcpSocket: {port: 8081}"},
		{name: "grpc", image: health, command: `[/health, "8082"]`, probe: "grpc: {port: 8082}"},
	}
	ill := []patient{
		{name: "exec", command: waits, probe: "exec: {command: [sh, -c, echo it is broken; exit 3]}", says: "exec: Readiness probe failed: it is broken"},
		{name: "grpc", image: health, command: `[/health, "8082", NOT_SERVING]`, probe: "grpc: {port: 8082}", says: `grpc: Readiness probe failed: service unhealthy (responded with "NOT_SERVING")`},
		{name: "grpcdown", command: waits, probe: "grpc: {port: 8083}", says: `grpcdown: Readiness probe failed: timeout: failed to connect service "`},
		{name: "http", command: fmt.Sprintf(web, 8080), probe: "httpGet: {port: 8080, path: /nowhere}", says: "http: Readiness probe failed: HTTP probe failed with statuscode: 404"},
		{name: "httpdown", command: waits, probe: "httpGet: {port: 8084}", says: `httpdown: Readiness probe failed: Get "http://`},
		{name: "slow", command: waits, probe: "exec: {command: [sleep, '10']}", says: `slow: Readiness probe failed: command timed out`},
		{name: "tcp", command: waits, probe: "tcpSocket: {port: 8081}", says: "connect: connection refused"},
	}
	w.write("well", patients("readiness", "", well))
	w.write("ill", patients("readiness", "", ill))
	w.status("well", "becomes ready", func(s v1.PodStatus) bool { return isReady(s) && allReady(s, len(well)) })
	w.status("ill", "says of each container why it is not ready", func(s v1.PodStatus) bool {
		says := func(p patient) bool { return strings.Contains(unreadyMessage(s), p.says) }
		return s.Phase == v1.PodRunning && !isReady(s) && !slices.ContainsFunc(ill, func(p patient) bool { return !says(p) })
	})
	for _, c := range append(w.containers("well"), w.containers("ill")...) {
		if c.Attempt != 0 {
			w.Errorf("container %s was restarted", c.Name)
		}
	}

	w.until("its status file says that it is ready", func() error {
		b, err := os.ReadFile(filepath.Join(w.agent.Root, "status", "pods", w.ns+"_"+name("well")+".json"))
		var p v1.Pod
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		if err == nil && !isReady(p.Status) {
			err = errors.New("it is not")
		}
		return err
	})
	w.kill()
	w.start()
	w.status("well", "is ready under the next agent at once", func(s v1.PodStatus) bool {
		if len(s.ContainerStatuses) > 0 && !isReady(s) {
			w.Fatalf("it is not ready: %+v", s.Conditions)
		}
		return isReady(s)
	})
}

func isReady(s v1.PodStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == v1.ConditionTrue })
}

func allReady(s v1.PodStatus, n int) bool {
	return len(s.ContainerStatuses) == n && !slices.ContainsFunc(s.ContainerStatuses, func(c v1.ContainerStatus) bool { return !c.Ready })
}

func unreadyMessage(s v1.PodStatus) string {
	for _, c := range s.Conditions {
		if c.Type == v1.ContainersReady {
			return c.Message
		}
	}
	return ""
}

// Each type of probe restarts a container, also one that ends with 0 when it is told to.
func restartsWhatIsUnhealthy(w *world) {
	check(w.T, w.rig.PushProgram("health", health))
	w.start()
	all := []patient{
		{name: "exec", command: waits, probe: "exec: {command: ['false']}, failureThreshold: 2", says: "Liveness probe failed: command exited with 1"},
		{name: "grpc", image: health, command: `[/health, "8082", NOT_SERVING]`, probe: "grpc: {port: 8082}", says: "Liveness probe failed: service unhealthy"},
		{name: "http", command: fmt.Sprintf(web, 8080), probe: "httpGet: {port: 8080, path: /nowhere}", says: "Liveness probe failed: HTTP probe failed with statuscode: 404"},
		{name: "tcp", command: waits, probe: "tcpSocket: {port: 8081}, terminationGracePeriodSeconds: 3", says: "Liveness probe failed: dial tcp"},
	}
	w.write("sick", patients("liveness", "  restartPolicy: OnFailure\n", all))
	w.status("sick", "is restarted for its probes", func(s v1.PodStatus) bool {
		return len(s.ContainerStatuses) == len(all) && !slices.ContainsFunc(all, func(p patient) bool {
			at := slices.IndexFunc(s.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.Name == p.name })
			c := s.ContainerStatuses[at]
			last := c.LastTerminationState.Terminated
			return c.RestartCount == 0 || last == nil || !strings.Contains(last.Message, p.says)
		})
	})
	w.ps("sick")
}

func startsAfterASidecarHasStarted(w *world) {
	w.start()
	w.write("slow", `
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: side
    image: "registry.test/busybox:1"
    restartPolicy: Always
    command: [sh, -c, "trap 'exit 0' TERM; sleep 2; touch /tmp/up; sleep 3600 & wait"]
    startupProbe: {exec: {command: [test, -e, /tmp/up]}, periodSeconds: 1, failureThreshold: 60}
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sleep, "3600"]}
`)
	main := w.running("slow")["slow"]
	for _, c := range w.containers("slow") {
		if c.Name != "side" {
			continue
		}
		side, err := w.rig.CRI.Status(w.Context(), c.ID)
		check(w.T, err)
		s, err := w.rig.CRI.Status(w.Context(), main.ID)
		check(w.T, err)
		if s.StartedAt-side.StartedAt < 2e9 || c.Attempt != 0 {
			w.Errorf("main was started %d ns after the sidecar, attempt %d", s.StartedAt-side.StartedAt, c.Attempt)
		}
	}
	w.status("slow", "becomes ready", isReady)
}
