package podstatus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/oom"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
)

func TestACondemnedContainersEndSaysWhatItsProbeSaid(t *testing.T) {
	s := scene{Pod: probed(pod(v1.RestartPolicyAlways, "a"), "a"), Accepted: true, Here: world(plantest.Condemned(exit("a", 0, 0, 0, "")), up("a", 1))}.Facts()
	last := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, nil).ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.Message != "Liveness probe failed: x" {
		t.Errorf("last state %+v", last)
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
			s := scene{Pod: p}.Facts()
			if got := podstatus.Terminated(&s, c, &n).Message; got != row.want {
				t.Errorf("got %d bytes %.60q, want %d %.60q", len(got), got, len(row.want), row.want)
			}
		})
	}
}

func TestAKillForWantOfMemoryIsSaid(t *testing.T) {
	word := filepath.Join(t.TempDir(), "word")
	if err := os.WriteFile(word, []byte("bye"), 0o600); err != nil {
		t.Fatal(err)
	}
	const killed = "the kernel killed its process x: the container used 2 MiB of its memory limit of 2 MiB"
	for name, row := range map[string]struct {
		file, want string
		kill       *oom.Kill
	}{
		"it is the message":                  {"", killed, &oom.Kill{Process: "x", Cgroup: "/a/a0", Limit: "/a/a0", Used: 2 << 20, Most: 2 << 20}},
		"the container's own message counts": {word, "bye", &oom.Kill{Process: "x", Cgroup: "/a/a0", Limit: "/a/a0", Used: 2 << 20, Most: 2 << 20}},
		"none is known":                      {"", "", nil},
	} {
		p := pod(v1.RestartPolicyAlways, "a")
		n := exit("a", 0, 137, 0, "")
		n.ID, n.TerminationLog, n.OOM = "a0", row.file, row.kill
		s := scene{Pod: p}.Facts()
		if got := podstatus.Terminated(&s, &p.Spec.Containers[0], &n).Message; got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// The record of a kill is gone with the agent that read it, or with the boot.
func TestAnEndForWantOfMemoryIsKept(t *testing.T) {
	ended := func(id, reason string, code int32) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: "fake://" + id, Reason: reason, ExitCode: code, Message: "why"}}
	}
	for _, row := range []struct {
		name, want string
		last       v1.ContainerStatus
	}{
		{"of the present attempt", "OOMKilled why", v1.ContainerStatus{Name: "a", State: ended("a0", "OOMKilled", 137)}},
		{"of the one that was the last", "OOMKilled why", v1.ContainerStatus{Name: "a", LastTerminationState: ended("a0", "OOMKilled", 137)}},
		{"not that of another attempt", "Error ", v1.ContainerStatus{Name: "a", State: ended("a9", "OOMKilled", 137)}},
		{"not another end", "Error ", v1.ContainerStatus{Name: "a", State: ended("a0", "OOMKilled", 0)}},
		{"no other reason", "Error ", v1.ContainerStatus{Name: "a", State: ended("a0", "Completed", 137)}},
	} {
		n := exit("a", 0, 137, 0, "")
		n.ID, n.Reason = "a0", "Error"
		s := scene{Pod: pod(v1.RestartPolicyNever, "a"), Accepted: true, Here: world(n)}.Facts()
		st := podstatus.PodStatus(&s, &plan.Plan{}, &podspec.Host{}, &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{row.last}})
		if got := st.ContainerStatuses[0].State.Terminated; got == nil || got.Reason+" "+got.Message != row.want {
			t.Errorf("%s: %+v, want %s", row.name, got, row.want)
		}
	}
}
