//go:build e2e

package e2e

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"monopod/agent/e2e/rig"
)

func onceStories() []onceStory {
	return slices.Concat(storiesOfOutcomes(), storiesOfEnds(), storiesOfTrouble(), []onceStory{
		{"Retries", retriesOnce},
		{"Kept", keepsOnce},
		{"Killed", removesWhatWasKilled},
		{"Reports", reportsOnce},
		{"TwoAtOnce", twoAtOnce},
	})
}

// storiesOfOutcomes are of work that comes to its end.
func storiesOfOutcomes() []onceStory {
	return []onceStory{
		{"Success", func(o *onceRun) {
			o.run(0, o.pod("ok", "Never", "echo hello; echo to you >&2; printf end"))
			o.prints("ok/main | hello")
			o.prints("ok/main | to you")
			o.prints("ok/main | end")
			if n := strings.Count(o.out.String(), "\n"); n != 3 {
				o.Errorf("%d lines", n)
			}
		}},
		{"Failure", func(o *onceRun) {
			o.run(7, o.pod("bad", "Never", "echo oops; exit 7"))
			o.prints("bad/main | oops")
			o.says("pod bad failed: container main ended with exit code 7")
		}},
		{"Two", func(o *onceRun) {
			o.run(0, o.pod("one", "Never", "echo 1"), o.pod("two", "Never", "for i in $(seq 2000); do echo line $i; done"))
			o.prints("one/main | 1")
			o.prints("two/main | line 1", "two/main | line 1000", "two/main | line 2000")
		}},
		{"FirstOfTwoThatFail", func(o *onceRun) {
			o.run(4, o.pod("later", "Never", "while [ ! -e /o/ended ]; do sleep 0.1; done; sleep 2; exit 5", o.shared()...),
				o.pod("first", "Never", "touch /o/ended; exit 4", o.shared()...))
		}},
		{"NoCommand", func(o *onceRun) { o.cannotRun("nosuch", 127) }},
		{"AFolder", func(o *onceRun) { o.cannotRun("/etc", 126) }},
		{"NotExecutable", func(o *onceRun) { o.cannotRun("/proc/version", 126) }},
		{"NeverMade", func(o *onceRun) {
			if o.w.rig.Runtime.RefusesCommands() {
				return // it makes the container, and fails to start it
			}
			o.flags = []string{"--timeout", "5m"}
			file := o.write("file", "no folder")
			o.run(125, o.pod("bad", "OnFailure", "echo never", "  volumeMounts: [{name: v, mountPath: /etc}]", "volumes: [{name: v, hostPath: {path: "+file+"}}]"))
			o.says("bad/main failed to be created 5 times in a row: CreateContainerError")
		}},
		{"InitFailure", func(o *onceRun) {
			o.run(5, o.pod("init", "Never", "echo never", "initContainers:", "- {name: prepare, image: registry.test/busybox:1, command: [sh, -c, exit 5]}"))
			o.says("container prepare ended with exit code 5")
			if strings.Contains(o.out.String(), "never") {
				o.Error("the container ran")
			}
		}},
		{"Sidecar", func(o *onceRun) {
			o.run(0, o.pod("job", "Never", "sleep 1; echo done", "initContainers:", `- {name: side, image: registry.test/busybox:1, restartPolicy: Always,
      command: [sh, -c, "trap 'echo side ends; exit 0' TERM; echo side begins; sleep 3600 & wait"]}`))
			o.prints("job/side | side begins", "job/side | side ends")
		}},
		{"Service", func(o *onceRun) {
			o.run(0, o.pod("db", "Always", "trap 'echo db ends; exit 0' TERM; echo db begins; sleep 3600 & wait"), o.pod("job", "Never", "sleep 1; echo done"))
			o.prints("db/main  | db begins", "job/main | done", "db/main  | db ends")
		}},
		{"Loads", func(o *onceRun) {
			const name = "offline.test/once:1"
			archive := filepath.Join(o.dir, "app.tar")
			check(o.T, rig.SaveImage(archive, name, "for once"))
			o.flags = []string{"--load", archive}
			o.run(0, strings.Replace(o.pod("job", "Never", "cat /etc/version"), rig.Busybox, name, 1))
			o.prints("job/main | for once")
		}},
		{"CodeFrom", func(o *onceRun) {
			o.flags = []string{"--exit-code-from", "b"}
			o.run(4, o.pod("a", "Never", "exit 3"), o.pod("b", "Never", "sleep 1; exit 4"))
		}},
		{"CodeFromContainer", func(o *onceRun) {
			o.flags = []string{"--exit-code-from", "app/test"}
			o.run(6, o.pod("app", "Always", "trap 'exit 0' TERM; sleep 3600 & wait")+"  - {name: test, image: registry.test/busybox:1, command: [sh, -c, echo tested; exit 6]}\n")
			o.prints("app/test | tested")
		}},
	}
}

// cannotRun runs a pod whose command cannot be executed. A runtime that makes a container of it all
// the same has it end with 128.
func (o *onceRun) cannotRun(command string, code int) {
	o.Helper()
	if o.w.rig.Runtime.RefusesCommands() {
		code = 128
	}
	o.run(code, strings.Replace(o.pod("bad", "Never", "x"), `[sh, -c, "x"]`, "["+command+"]", 1))
}

// storiesOfEnds are of work that is cut short.
func storiesOfEnds() []onceStory {
	return []onceStory{
		{"Timeout", func(o *onceRun) {
			o.flags = []string{"--timeout", "8s"}
			o.run(124, o.pod("slow", "Never", "trap 'echo cut; exit 0' TERM; sleep 3600 & wait"))
			o.prints("slow/main | cut")
			o.says("not ended within 8s")
		}},
		{"Interrupted", func(o *onceRun) {
			o.start(o.pod("slow", "Never", "trap 'sleep 1; echo cleaned up; exit 0' TERM; touch /o/up; sleep 3600 & wait", o.shared()...))
			o.has("up")
			o.signal(syscall.SIGINT)
			o.ends(130)
			o.prints("slow/main | cleaned up")
		}},
		{"Terminated", func(o *onceRun) {
			o.start(o.pod("slow", "Never", "trap 'exit 0' TERM; sleep 3600 & wait"))
			o.runs(1)
			o.signal(syscall.SIGTERM)
			o.ends(143)
		}},
		{"InterruptedTwice", func(o *onceRun) {
			m := strings.Replace(o.pod("deaf", "Never", "trap '' TERM; while :; do sleep 1; done"), "Seconds: 10", "Seconds: 600", 1)
			o.start(m)
			o.runs(1)
			o.signal(syscall.SIGINT)
			o.hears("what runs is stopped")
			o.signal(syscall.SIGINT)
			o.ends(130)
		}},
		{"InterruptedAtOnce", func(o *onceRun) {
			o.start(o.pod("soon", "Never", "sleep 3600"), o.pod("too", "Never", "sleep 3600"))
			check(o.T, rig.Until(o.Context(), limit, func() error {
				if dirs, _ := filepath.Glob(o.tmp() + "/*/pods/*"); len(dirs) == 0 {
					return errors.New("no pod was started")
				}
				return nil
			}))
			o.signal(syscall.SIGINT)
			o.ends(130)
		}},
	}
}

// storiesOfTrouble are of what cannot run, and of what runs for good.
func storiesOfTrouble() []onceStory {
	return []onceStory{
		{"Invalid", func(o *onceRun) {
			good := o.write("good.yaml", o.pod("good", "Never", "true"))
			bad := o.write("bad.yaml", o.pod("bad", "Sometimes", "true"))
			worse := o.write("worse.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: worse}\nspec:\n  containers: []\n")
			o.launch(good, bad, worse)
			o.ends(2)
			o.says(bad+":6:18: spec.restartPolicy", worse+":5:", "2 problems")
		}},
		{"NoCgroups", func(o *onceRun) {
			o.flags = []string{"--cgroup-root", "/monopod-nowhere"}
			o.run(0, o.pod("free", "Never", "echo runs all the same"))
			o.prints("free/main | runs all the same")
			o.says("pods get no cgroups of their own here")
		}},
		{"NoCredentials", func(o *onceRun) { // found out when the cgroups are made already
			bad := o.write("credentials.yaml", "nonsense: 1\n")
			o.flags = []string{"--cgroup-driver", "cgroupfs", "--image-credential-provider-config", bad, "--image-credential-provider-bin-dir", o.dir}
			o.run(125, o.pod("lost", "Never", "true"))
			o.says("credentials.yaml")
		}},
		{"MissingImage", func(o *onceRun) {
			o.run(125, strings.Replace(o.pod("lost", "Never", "true"), "busybox:1", "nowhere:1", 1))
			o.says(`lost/main: image registry.test/nowhere:1 cannot be pulled`)
			o.says("lost/main cannot start: ")
			if n := strings.Count(o.err.String(), "cannot be pulled"); n > 2 {
				o.Errorf("says so %d times", n)
			}
		}},
		{"NeverPulled", func(o *onceRun) {
			m := strings.Replace(o.pod("lost", "Never", "true"), "busybox:1", "nowhere:1\n    imagePullPolicy: Never", 1)
			o.run(125, m)
			o.says("lost/main cannot start: ErrImageNeverPull")
		}},
		{"NoRuntime", func(o *onceRun) {
			o.flags = []string{"--runtime-endpoint", "unix://" + o.dir + "/nobody.sock"}
			o.run(125, o.pod("lost", "Never", "true"))
			o.says("nobody.sock")
		}},
		{"Ready", func(o *onceRun) {
			o.flags = []string{"--until", "ready"}
			o.run(0, o.pod("web", "Always", "sleep 1; touch /tmp/up; trap 'exit 0' TERM; sleep 3600 & wait",
				"  readinessProbe: {exec: {command: [test, -e, /tmp/up]}, periodSeconds: 1}"))
			o.says("all pods are ready")
		}},
		{"Stdin", func(o *onceRun) {
			o.stdin = o.pod("in", "Never", "echo from a pipe") + "---\n" + o.pod("second", "OnFailure", "exit 0")
			o.launch("-")
			o.ends(0)
			o.prints("in/main     | from a pipe")
		}},
	}
}

func retriesOnce(o *onceRun) {
	m := o.pod("retry", "OnFailure", "[ -e /d/tried ] && { echo well; sleep 1; exit 0; }; touch /d/tried; echo ill; exit 9",
		"  volumeMounts: [{name: d, mountPath: /d}]", "volumes: [{name: d, emptyDir: {medium: Memory}}]")
	o.run(0, strings.Replace(m, "  hostNetwork: true\n", "", 1))
	o.prints("retry/main | ill", "retry/main | well")
	o.says("retry/main: ended with exit code 9")
}

func removesWhatWasKilled(o *onceRun) {
	o.start(o.pod("left", "Never", "trap 'exit 0' TERM; sleep 3600 & wait"))
	o.runs(1)
	check(o.T, o.cmd.Process.Kill())
	o.ends(-1)
	o.run(0, o.pod("next", "Never", "true"))
	dirs, _ := filepath.Glob(o.tmp() + "/*")
	o.says("`monopod once --remove " + dirs[0] + "`")
	o.flags = []string{"--remove", dirs[0]}
	o.launch()
	o.ends(0)
}

func keepsOnce(o *onceRun) {
	o.flags = []string{"--until", "ready", "--keep"}
	o.run(0, o.pod("web", "Always", "trap 'exit 0' TERM; sleep 3600 & wait"))
	o.runs(1)
	dirs, _ := filepath.Glob(o.tmp() + "/*")
	if len(dirs) != 1 {
		o.Fatalf("folders %v, want one", dirs)
	}
	o.says("`monopod once --remove " + dirs[0] + "`")
	o.flags = []string{"--remove", dirs[0]}
	o.launch()
	o.ends(0)
}

func reportsOnce(o *onceRun) {
	junit, other := filepath.Join(o.dir, "junit.xml"), filepath.Join(o.dir, "report.json")
	o.flags = []string{"--report", "junit=" + junit, "--report", "json=" + other}
	o.run(3, o.pod("good", "Never", "echo fine"), o.pod("bad", "Never", `printf '\033[31mred <&>\033[0m\n'; exit 3`))
	b, err := os.ReadFile(junit)
	check(o.T, err)
	var x struct {
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Out     string `xml:"system-out"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	check(o.T, xml.Unmarshal(b, &x))
	if len(x.Suites) != 2 || x.Failures != 1 || x.Suites[1].Name != o.ns+"/bad" || x.Suites[0].Cases[0].Failure != nil ||
		x.Suites[1].Cases[0].Failure == nil || x.Suites[1].Cases[0].Failure.Message != "exit code 3" || x.Suites[1].Cases[0].Out != "\\x1b[31mred <&>\\x1b[0m\n" {
		o.Errorf("junit:\n%s", b)
	}
	b, err = os.ReadFile(other)
	check(o.T, err)
	var r struct {
		Outcome  string
		ExitCode int
		Pods     []struct {
			Name, Phase string
			Containers  []struct {
				Result   string
				ExitCode *int
				Output   []string
			}
		}
	}
	check(o.T, json.Unmarshal(b, &r))
	if r.Outcome != "failed" || r.ExitCode != 3 || len(r.Pods) != 2 || r.Pods[0].Phase != "Succeeded" || r.Pods[1].Name != "bad" ||
		*r.Pods[1].Containers[0].ExitCode != 3 || !slices.Equal(r.Pods[0].Containers[0].Output, []string{"fine"}) {
		o.Errorf("json:\n%s", b)
	}
}

// twoAtOnce runs the same manifests twice at the same time, beside an agent that
// has them, too.
func twoAtOnce(o *onceRun) {
	m := o.pod("same", "Never", "sleep 1; echo ran")
	always := o.pod("stays", "Always", "trap 'exit 0' TERM; sleep 3600 & wait")
	check(o.T, o.w.agent.Start(o.Context()))
	check(o.T, o.w.agent.Write("stays.yaml", always))
	o.runs(1)
	before, err := o.w.rig.CRI.Containers(o.Context(), o.ns)
	check(o.T, err)
	other := &onceRun{T: o.T, w: o.w, ns: o.ns, dir: o.dir}
	other.start(m, always)
	o.run(0, m, always)
	other.ends(0)
	o.prints("same/main  | ran")
	other.prints("same/main  | ran")
	after, err := o.w.rig.CRI.Containers(o.Context(), o.ns)
	check(o.T, err)
	if !slices.Equal(before, after) {
		o.Errorf("the agent's pod was touched: %+v, before %+v", after, before)
	}
	check(o.T, o.w.agent.Clear())
	o.runs(0)
	check(o.T, rig.Until(o.Context(), limit, func() error { return o.w.empty(o.Context()) }))
}
