package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
)

// spoken writes a status in one line: the phase, then each container.
func spoken(st v1.PodStatus) string {
	out := []string{string(st.Phase)}
	for _, list := range [][]v1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses} {
		for _, c := range list {
			t := fmt.Sprintf("%s#%d %s", c.Name, c.RestartCount, state(c.State))
			if l := state(c.LastTerminationState); l != "" {
				t += " after " + l
			}
			if c.Ready {
				t += " ready"
			}
			out = append(out, t)
		}
	}
	return strings.Join(out, "; ")
}

func state(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("%d %s", s.Terminated.ExitCode, s.Terminated.Reason)
	case s.Waiting != nil:
		return "waits:" + s.Waiting.Reason
	}
	return ""
}

// reported returns a status that says of each container what a line of "name#count
// state [code]" says: "a#2 running" or "a#0 exited 3". Its id is the name and the count.
func reported(pod *v1.Pod, lines ...string) *v1.PodStatus {
	st := &v1.PodStatus{StartTime: &metav1.Time{Time: noon.Add(-time.Hour)}}
	for _, l := range lines {
		var c v1.ContainerStatus
		var how string
		code := int32(0)
		fmt.Sscanf(strings.Replace(l, "#", " ", 1), "%s %d %s %d", &c.Name, &c.RestartCount, &how, &code)
		c.ContainerID = fmt.Sprintf("fake://%s%d", c.Name, c.RestartCount)
		switch how {
		case "running":
			c.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon.Add(-time.Minute)}}
		case "exited":
			c.State.Terminated = &v1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}
		case "waits":
			c.State.Waiting = &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
			c.LastTerminationState.Terminated = &v1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}
		}
		if podspec.IsInit(pod, &v1.Container{Name: c.Name}) {
			st.InitContainerStatuses = append(st.InitContainerStatuses, c)
		} else {
			st.ContainerStatuses = append(st.ContainerStatuses, c)
		}
	}
	return st
}

func TestStatus(t *testing.T) {
	always, onFailure, never := v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	created, unknown := rt.ContainerState_CONTAINER_CREATED, rt.ContainerState_CONTAINER_UNKNOWN
	p := func(policy v1.RestartPolicy) *v1.Pod { return pod(policy, "a") }
	two := func(policy v1.RestartPolicy) *v1.Pod { return pod(policy, "a", "b") }
	failing := map[string]plan.Failure{"a": {Waiting: plan.Waiting{Reason: "RunContainerError"}, Retry: noon.Add(time.Second)}}
	for _, row := range []struct {
		name string
		scene
		last []string
		want string
	}{
		// The phase.
		{"nothing made yet", scene{pod: p(always)}, nil, "Pending; a#0 waits:ContainerCreating"},
		{"nothing made yet, with init containers", scene{pod: withInit(p(always), "i")}, nil, "Pending; i#0 waits:PodInitializing; a#0 waits:PodInitializing"},
		{"an init container runs", scene{pod: withInit(p(always), "i"), here: world(up("i", 0))}, nil, "Pending; i#0 running; a#0 waits:PodInitializing"},
		{"an init container has failed and is restarted", scene{pod: withInit(p(always), "i"), here: world(exit("i", 0, 1, 0, "0s"))}, nil,
			"Pending; i#0 waits:CrashLoopBackOff after 1 Error; a#0 waits:PodInitializing"},
		{"an init container has failed for good", scene{pod: withInit(p(never), "i"), here: world(exit("i", 0, 1, 0, ""))}, nil, "Failed; i#0 1 Error; a#0 waits:PodInitializing"},
		{"all run", scene{pod: two(always), here: world(up("a", 0), up("b", 2))}, nil, "Running; a#0 running ready; b#2 running ready"},
		{"one of two is still to come", scene{pod: two(always), here: world(up("a", 0))}, nil, "Pending; a#0 running ready; b#0 waits:ContainerCreating"},
		{"one of two is done", scene{pod: two(never), here: world(up("a", 0), exit("b", 0, 0, 0, ""))}, nil, "Running; a#0 running ready; b#0 0 Completed"},
		{"one that crashed waits to be restarted", scene{pod: p(always), here: world(exit("a", 1, 1, 0, "0s"))}, nil, "Running; a#1 waits:CrashLoopBackOff after 1 Error"},
		{"one that crashed is restarted at once", scene{pod: p(always), here: world(exit("a", 0, 1, 0, ""))}, nil, "Running; a#0 1 Error"},
		{"exit code 0 under OnFailure", scene{pod: p(onFailure), here: world(exit("a", 0, 0, 0, ""))}, nil, "Succeeded; a#0 0 Completed"},
		{"exit code 1 under OnFailure", scene{pod: p(onFailure), here: world(exit("a", 0, 1, 0, ""))}, nil, "Running; a#0 1 Error"},
		{"both exit codes under Never", scene{pod: two(never), here: world(exit("a", 0, 0, 0, ""), exit("b", 0, 2, 0, ""))}, nil, "Failed; a#0 0 Completed; b#0 2 Error"},
		{"a sidecar runs when the work is done", scene{pod: withSidecar(p(never), "s"), here: world(up("s", 0), exit("a", 0, 0, 0, ""))}, nil, "Running; s#0 running ready; a#0 0 Completed"},
		{"a sidecar that has stopped counts for nothing", scene{pod: withSidecar(p(never), "s"), here: world(exit("s", 0, 9, 0, ""), exit("a", 0, 0, 0, ""))}, nil, "Succeeded; s#0 9 Error; a#0 0 Completed"},
		{"a sidecar is still to come", scene{pod: withSidecar(p(always), "s"), here: world()}, nil, "Pending; s#0 waits:PodInitializing; a#0 waits:PodInitializing"},
		{"a reboot's init container runs again", scene{pod: withInit(p(always), "i"), here: world(up("i", 1), exit("a", 0, 255, 0, ""))}, nil, "Pending; i#1 running; a#0 255 Error"},

		// The states.
		{"created", scene{pod: p(always), here: world(in(created, "a"))}, nil, "Pending; a#0 waits:"},
		{"unknown, never seen", scene{pod: p(always), here: world(in(unknown, "a"))}, nil, "Pending; a#0 waits:"},
		{"unknown, ran", scene{pod: p(always), here: world(in(unknown, "a"))}, []string{"a#0 running"}, "Running; a#1 137 ContainerStatusUnknown"},
		{"unknown, ran, not to be restarted", scene{pod: p(never), here: world(in(unknown, "a"))}, []string{"a#0 running"}, "Running; a#0 137 ContainerStatusUnknown"},
		{"removed, ran", scene{pod: p(always), here: world()}, []string{"a#2 running"}, "Running; a#3 waits:ContainerCreating after 137 ContainerStatusUnknown"},
		{"removed, ran, and the pod is being removed", scene{pod: p(always), accepted: true, retired: true, here: world()}, []string{"a#2 running"}, "Running; a#2 waits:ContainerCreating after 137 ContainerStatusUnknown"},
		{"removed, had ended", scene{pod: p(always), here: world()}, []string{"a#2 exited 4"}, "Running; a#2 4 Error"},
		{"removed, waited to be restarted", scene{pod: p(always), here: world()}, []string{"a#2 waits 4"}, "Running; a#2 waits:ContainerCreating after 4 Error"},
		{"an init container removed, ran, and a regular one runs", scene{pod: withInit(p(always), "i"), here: world(up("a", 0))}, []string{"i#1 running", "a#0 running"}, "Running; i#1 0 Completed ready; a#0 running ready"},
		{"an init container removed, never seen, and a regular one runs", scene{pod: withInit(p(always), "i"), here: world(up("a", 0))}, nil, "Running; i#0 0 Completed ready; a#0 running ready"},
		{"an init container removed, had ended well", scene{pod: withInit(p(always), "i"), here: world()}, []string{"i#1 exited 0"}, "Pending; i#1 0 Error ready; a#0 waits:PodInitializing"},
		{"a sidecar removed, ran", scene{pod: withSidecar(p(always), "s"), here: world(up("a", 0))}, []string{"s#0 running"}, "Running; s#1 waits:PodInitializing after 137 ContainerStatusUnknown; a#0 running ready"},

		// What could not be started.
		{"a start failed and is tried again", scene{pod: p(always), here: world(exit("a", 0, 128, 0, "")), failures: failing}, nil, "Running; a#0 waits:RunContainerError after 128 Error"},
		{"a start failed and is not to be tried again", scene{pod: p(never), here: world(exit("a", 0, 128, 0, "")), failures: failing}, nil, "Failed; a#0 128 Error"},

		// What was before.
		{"the attempt before is in the runtime", scene{pod: p(always), here: world(exit("a", 0, 7, time.Minute, ""), up("a", 1))}, nil, "Running; a#1 running after 7 Error ready"},
		{"the attempt before was pruned", scene{pod: p(always), here: world(up("a", 1))}, []string{"a#0 exited 7"}, "Running; a#1 running after 7 Error ready"},
		{"the attempt before was pruned while it waited", scene{pod: p(always), here: world(up("a", 1))}, []string{"a#0 waits 7"}, "Running; a#1 running after 7 Error ready"},
		{"the attempt before was removed while it ran", scene{pod: p(always), here: world(up("a", 1))}, []string{"a#0 running"}, "Running; a#1 running after 137 ContainerStatusUnknown ready"},
		{"a count does not fall", scene{pod: p(always), here: world(up("a", 1))}, []string{"a#3 exited 7"}, "Running; a#3 running after 7 Error ready"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := row.scene.situation()
			var last *v1.PodStatus
			if row.last != nil {
				last = reported(row.pod, row.last...)
			}
			if got := spoken(podstatus.PodStatus(&s, new(plan.Make(s)), &podspec.Host{}, last)); got != row.want {
				t.Errorf("\n got  %s\n want %s", got, row.want)
			}
		})
	}
}

func TestAReportedAttemptThatIsGoneMakesOlderOnesSayNothing(t *testing.T) {
	for _, row := range []struct {
		name string
		here *pleg.Instance
		last string
		next uint32
		want string
	}{
		{"the reported one is there", world(exit("a", 2, 0, 0, "0s")), "a#2 exited 0", 0, "stop sandbox s0; end Succeeded"},
		{"a newer one is there", world(exit("a", 3, 0, 0, "0s")), "a#2 running", 0, "stop sandbox s0; end Succeeded"},
		{"only an older one is there", world(exit("a", 1, 0, 0, "0s")), "a#2 running", 3, "start container a#3"},
		{"an older one that lives is not doubled", world(up("a", 1)), "a#2 running", 0, ""},
		{"nothing is there", world(), "a#2 running", 3, "start container a#3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := pod(v1.RestartPolicyOnFailure, "a")
			s := scene{pod: p, accepted: true, here: row.here}.situation()
			s.Next = s.FindMissing(reported(p, row.last))
			if got := told(plan.Make(s)); got != row.want || s.Next["a"] != row.next {
				t.Errorf("next %d, want %d\n got  %s\n want %s", s.Next["a"], row.next, got, row.want)
			}
		})
	}
}

func TestTerminationMessages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	line := func(tag, text string) string {
		return "2026-01-01T00:00:00.000000000Z stderr " + tag + " " + text + "\n"
	}
	empty, word := write("empty", ""), write("word", "bye")
	short := write("short", line("F", "one")+line("P", "tw")+line("F", "o"))
	many := write("many", strings.Repeat(line("F", "old"), 30)+strings.Repeat(line("F", "x"), 80))
	long := write("long", strings.Repeat(line("P", strings.Repeat("a", 16000)), 9)+line("F", "end"))
	for _, row := range []struct {
		name, file, log string
		falls           bool
		code            int32
		runtime         string
		containers      int
		want            string
	}{
		{"the file counts", word, short, true, 1, "", 1, "bye"},
		{"the runtime's own words come first", word, "", false, 1, "no such file", 1, "no such file: bye"},
		{"the log is not asked unless wished", empty, short, false, 1, "", 1, ""},
		{"the log of one that failed", empty, short, true, 1, "", 1, "one\ntwo\n"},
		{"the log of one without a file", "", short, true, 1, "", 1, "one\ntwo\n"},
		{"not of one that succeeded", empty, short, true, 0, "", 1, ""},
		{"at most eighty lines", empty, many, true, 1, "", 1, strings.Repeat("x\n", 80)},
		{"at most 2048 bytes, of long lines too", empty, long, true, 1, "", 1, strings.Repeat("a", 2044) + "end\n"},
		{"no log is no message", empty, filepath.Join(dir, "none"), true, 1, "", 1, ""},
		{"all containers share what a pod may say", "", long, true, 1, "", 20, strings.Repeat("a", 614)},
	} {
		t.Run(row.name, func(t *testing.T) {
			var names []string
			for k := range row.containers {
				names = append(names, fmt.Sprint("c", k))
			}
			p := pod(v1.RestartPolicyAlways, names...)
			c := &p.Spec.Containers[0]
			if c.TerminationMessagePolicy = v1.TerminationMessageReadFile; row.falls {
				c.TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
			}
			n := exit("c0", 0, row.code, 0, "")
			n.TerminationLog, n.Message, n.Status = row.file, row.runtime, &rt.ContainerStatus{LogPath: row.log}
			s := scene{pod: p}.situation()
			if got := podstatus.Terminated(&s, c, &n).Message; got != row.want {
				t.Errorf("got %d bytes %.60q, want %d %.60q", len(got), got, len(row.want), row.want)
			}
		})
	}
}

func TestResourcesAreTheRuntimesWhereItRuns(t *testing.T) {
	list := func(pairs ...string) v1.ResourceList {
		l := v1.ResourceList{}
		for k := 0; k < len(pairs); k += 2 {
			l[v1.ResourceName(pairs[k])] = resource.MustParse(pairs[k+1])
		}
		return l
	}
	for _, row := range []struct {
		name             string
		requests, limits v1.ResourceList
		linux            *rt.LinuxContainerResources
		want             string
	}{
		{"as the manifest says", list("cpu", "100m", "memory", "1Gi"), list("cpu", "1", "memory", "2Gi"),
			&rt.LinuxContainerResources{CpuShares: 102, CpuQuota: 100000, CpuPeriod: 100000, MemoryLimitInBytes: 2 << 30}, "100m 1Gi 1 2Gi"},
		{"otherwise", list("cpu", "100m", "memory", "1Gi"), list("cpu", "1", "memory", "2Gi"),
			&rt.LinuxContainerResources{CpuShares: 512, CpuQuota: 50000, CpuPeriod: 100000, MemoryLimitInBytes: 3 << 30}, "500m 1Gi 500m 3Gi"},
		{"what the manifest does not limit stays so", list("cpu", "100m"), nil, &rt.LinuxContainerResources{CpuShares: 102, MemoryLimitInBytes: 1 << 30}, "100m - - -"},
		{"too little for the kernel to tell", list("cpu", "1m"), list("cpu", "5m"), &rt.LinuxContainerResources{CpuShares: 2, CpuQuota: 1000, CpuPeriod: 100000}, "1m - 5m -"},
		{"the runtime does not say", list("cpu", "100m"), list("memory", "2Gi"), &rt.LinuxContainerResources{}, "100m - - 2Gi"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &v1.Container{Resources: v1.ResourceRequirements{Requests: row.requests, Limits: row.limits}}
			n := up("c", 0)
			n.Status = &rt.ContainerStatus{Resources: &rt.ContainerResources{Linux: row.linux}}
			has, promised := podstatus.ResourcesOf(c, &n)
			var got []string
			for _, l := range []v1.ResourceList{has.Requests, has.Limits} {
				for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
					if q, ok := l[name]; ok {
						got = append(got, q.String())
					} else {
						got = append(got, "-")
					}
				}
			}
			if strings.Join(got, " ") != row.want || len(promised) != len(row.requests) {
				t.Errorf("got %v, promised %v; want %s", got, promised, row.want)
			}
			n.State = rt.ContainerState_CONTAINER_EXITED
			if has, _ := podstatus.ResourcesOf(c, &n); !has.Requests.Cpu().Equal(*row.requests.Cpu()) {
				t.Errorf("one that does not run has %v", has)
			}
		})
	}
}
