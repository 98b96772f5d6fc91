//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"monopod/agent/e2e/rig"
)

// unlike are parts of what people see that are the OCI runtime's own, or of the moment, and what is
// compared in their place.
var unlike = []struct {
	text *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`(OCI runtime \w+ failed: ).*`), "${1}WORDS"},
	{regexp.MustCompile(`exec "[0-9a-f]{64}"`), "exec ID"},
	{regexp.MustCompile(`used [0-9.]+ MiB`), "used N MiB"},
}

// living is a pod that lives for long, with a grace that no test waits for; of the two values the
// first is its runtime class, and the second a folder of the host.
const living = `
  %s
  terminationGracePeriodSeconds: 600
  dnsPolicy: Default
  volumes: [{name: notes, hostPath: {path: %s}}]
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "trap 'echo term >> /notes/said; exit 0' TERM; echo started; mkdir /www; echo hello > /www/index.html; httpd -p 8080 -h /www; touch /tmp/well; sleep 3600 & wait"]
    resources: {requests: {cpu: 50m, memory: 32Mi}, limits: {cpu: '1', memory: 64Mi}}
    readinessProbe: {periodSeconds: 1, httpGet: {port: 8080, path: /index.html}}
    livenessProbe: {periodSeconds: 1, failureThreshold: 2, initialDelaySeconds: 1, exec: {command: [test, -e, /tmp/well]}}
    lifecycle: {preStop: {exec: {command: [sh, -c, "echo hook >> /notes/said"]}}}
    volumeMounts: [{name: notes, mountPath: /notes}]
`

// ending is a pod whose containers end in all ways.
const ending = `
  %s
  hostNetwork: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: code, image: "registry.test/busybox:1", command: [sh, -c, "echo so it is > /dev/termination-log; exit 7"]}
  - {name: good, image: "registry.test/busybox:1", command: ["true"]}
  - {name: memory, image: "registry.test/busybox:1", command: [tail, /dev/zero], resources: {limits: {memory: 64Mi}}}
  - {name: nosuch, image: "registry.test/busybox:1", command: [nosuch]}
  - {name: noprogram, image: "registry.test/busybox:1", command: [/etc]}
  - {name: said, image: "registry.test/busybox:1", command: [sh, -c, "echo the last words; exit 1"], terminationMessagePolicy: FallbackToLogsOnError}
  - {name: signal, image: "registry.test/busybox:1", command: [sh, -c, "sh -c 'kill -SEGV $$$$'; exit $?"]}
`

// runsCrunBesideRunc has pods of two runtime classes live the same lives: all that people see of
// them is the same, but for what unlike names.
func runsCrunBesideRunc(w *world) {
	if !w.rig.Runtime.HasCrun() {
		w.Log("NOT seen: this runtime has no handler for crun (containerds have one where crun is in PATH, containerd 2 where that is 1.15 or newer, and Debian 12 has 1.8)")
		return
	}
	w.agent.Settings += "runtimeClasses: {small: " + rig.Crun + "}\ncrashLoopBackOff: {firstContainerRestartPeriod: 100ms, maxContainerRestartPeriod: 1s}\n"
	w.start()
	runc, crun := newLife(w, "runc", ""), newLife(w, "crun", "runtimeClassName: small")
	for _, l := range []*life{runc, crun} {
		l.goes()
	}
	runc.remove(runc.pod)
	crun.remove(crun.pod)
	for _, l := range []*life{runc, crun} {
		w.until(l.pod+" is gone", func() error { return none(w.sandboxes(l.pod)) })
		b, err := os.ReadFile(filepath.Join(l.dir, "said"))
		check(w.T, err)
		l.sees("how it stops", string(b))
	}
	for _, what := range slices.Sorted(maps.Keys(runc.seen)) {
		if runc.seen[what] != crun.seen[what] {
			w.Errorf("%s differs:\nrunc %q\ncrun %q", what, runc.seen[what], crun.seen[what])
		}
	}
	if a, b := len(runc.seen), len(crun.seen); a != b || a < 15 {
		w.Errorf("of runc %d things were looked at, of crun %d", a, b)
	}
}

// life is that of the pods of one runtime class.
type life struct {
	*world
	class, pod, ends string
	dir              string            // where it notes what happens
	seen             map[string]string // by what was looked at
}

// sees notes what there is to be seen of something.
func (l *life) sees(what, text string) {
	for _, u := range unlike {
		text = u.text.ReplaceAllString(text, u.by)
	}
	l.seen[what] = strings.ReplaceAll(text, l.pod, "POD")
}

// newLife writes the manifests of two pods; class is a line of them.
func newLife(w *world, oci, class string) *life {
	l := &life{world: w, class: class, pod: oci + "-lives", ends: oci + "-ends", dir: filepath.Join(w.agent.Dir, oci), seen: map[string]string{}}
	check(w.T, os.Mkdir(l.dir, 0o755))
	w.write(l.pod, l.manifest(""))
	w.write(l.ends, fmt.Sprintf(ending, class))
	return l
}

// manifest returns the pod that lives, with other limits than at first if some are given.
func (l *life) manifest(limits string) string {
	text := fmt.Sprintf(living, l.class, l.dir)
	if limits != "" {
		text = strings.Replace(text, "limits: {cpu: '1', memory: 64Mi}", limits, 1)
	}
	return text
}

// goes looks at all that happens to the pods until one of them is removed.
func (l *life) goes() {
	l.status(l.pod, "is ready", isReady)
	main := l.running(l.pod)[l.pod]
	if l.rig.Runtime.IsCruns(main.ID) != (l.class != "") {
		l.Fatalf("crun has made the container of %s: %v", l.pod, l.class == "")
	}
	l.says("a command that fails", "exec", l.pod, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
	l.says("a command that is not there", "exec", l.pod, "--", "nosuch")
	l.says("a command that is a folder", "exec", l.pod, "--", "/etc")
	l.says("a command with a user's input", "exec", "-i", l.pod, "--", "wc", "-c")
	l.says("what is logged", "logs", l.pod)
	l.says("who runs it", "exec", l.pod, "--", "id")
	l.says("its capabilities", "exec", l.pod, "--", "grep", "-E", "^(Cap|NoNewPrivs|Seccomp)", "/proc/1/status")
	l.says("its devices", "exec", l.pod, "--", "sh", "-c", "stat -c '%n %F %a' $(find /dev -type b -o -type c | grep -v pts/ | sort)")
	l.says("what is mounted", "exec", l.pod, "--", "sh", "-c", "cut -d' ' -f5 /proc/1/mountinfo | sort")
	l.isMeasured()
	l.isResized(main)
	l.crash(main)
	l.restarted("a crash", 1)
	l.exits(0, "", "", "", "exec", l.pod, "--", "rm", "/tmp/well")
	l.restarted("a liveness probe", 2)
	for _, c := range l.phase(l.ends, v1.PodFailed).ContainerStatuses {
		t := c.State.Terminated
		if t == nil {
			l.Fatalf("container %s of %s is %+v", c.Name, l.ends, c.State)
		}
		l.sees("the end of "+c.Name, fmt.Sprintf("%d %s %s", t.ExitCode, t.Reason, t.Message))
	}
}

// says looks at what a command says, and how it exits.
func (l *life) says(what, command string, args ...string) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), limit)
	defer cancel()
	cmd := l.command(ctx, command, args...)
	cmd.Stdin = strings.NewReader("input")
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	l.sees(what, fmt.Sprintf("%d %s%s", cmd.ProcessState.ExitCode(), &out, &errs))
}

// isMeasured waits until what the pod uses is told.
func (l *life) isMeasured() {
	l.until("the summary tells what "+l.pod+" uses", func() error {
		code, body, err := l.agent.Get(l.Context(), "/stats/summary")
		if err != nil || code != 200 {
			return fmt.Errorf("%d %s: %v", code, body, err)
		}
		var sum stats.Summary
		if err := json.Unmarshal([]byte(body), &sum); err != nil {
			return rig.Final(err)
		}
		k := slices.IndexFunc(sum.Pods, func(p stats.PodStats) bool { return p.PodRef.Name == name(l.pod) })
		if k < 0 || len(sum.Pods[k].Containers) != 1 {
			return fmt.Errorf("it does not: %s", body)
		}
		c := sum.Pods[k].Containers[0]
		if c.CPU == nil || c.CPU.UsageCoreNanoSeconds == nil || *c.CPU.UsageCoreNanoSeconds == 0 || c.Memory == nil || c.Memory.WorkingSetBytes == nil || *c.Memory.WorkingSetBytes == 0 {
			return fmt.Errorf("cpu %+v, memory %+v", c.CPU, c.Memory)
		}
		if processes := sum.Pods[k].ProcessStats; processes == nil || *processes.ProcessCount < 3 {
			return fmt.Errorf("processes %+v", processes)
		}
		return nil
	})
	l.until("monopod top shows "+l.pod, func() error {
		out, err := l.agent.CLI(l.Context(), "top")
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 3 && f[1] == l.pod && strings.HasSuffix(f[2], "m") && strings.HasSuffix(f[3], "Mi") {
				return nil
			}
		}
		return fmt.Errorf("%v\n%s", err, out)
	})
}

// isResized gives the pod other limits, which change nothing else.
func (l *life) isResized(main rig.Container) {
	l.write(l.pod, l.manifest("limits: {cpu: 900m, memory: 96Mi}"))
	cgroup := filepath.Join(l.agent.Cgroups, "kubepods/burstable", "pod"+main.UID, l.rig.Runtime.Cgroup(main.ID))
	l.cgroup(cgroup, "memory/memory.limit_in_bytes", "100663296", "memory.max", "100663296")
	l.cgroup(cgroup, "cpu/cpu.cfs_quota_us", "90000", "cpu.max", "90000 100000")
	l.same(map[string]rig.Container{l.pod: main})
}

// restarted waits until the container has restarted so often and is ready, and looks at why.
func (l *life) restarted(by string, times int32) {
	l.Helper()
	s := l.status(l.pod, "is ready after "+by, func(s v1.PodStatus) bool {
		return isReady(s) && s.ContainerStatuses[0].RestartCount == times && s.ContainerStatuses[0].LastTerminationState.Terminated != nil
	})
	last := s.ContainerStatuses[0].LastTerminationState.Terminated
	l.sees("the end by "+by, fmt.Sprintf("%d %s %s", last.ExitCode, last.Reason, last.Message))
	if took := last.FinishedAt.Sub(last.StartedAt.Time); took < 0 || took > time.Hour {
		l.Errorf("it ran for %s", took)
	}
}
