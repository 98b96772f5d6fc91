//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"monopod/agent/e2e/rig"
)

// onceRun is a run of `monopod once` with a folder for temporary files and a
// namespace of its own.
type onceRun struct {
	*testing.T
	w        *world
	ns, dir  string
	flags    []string
	stdin    string
	cmd      *exec.Cmd
	out, err screen
	code     int
}

// onceStory is what a person does with it.
type onceStory struct {
	name string
	tell func(o *onceRun)
}

// atOnce is how many stories are told at the same time.
const atOnce = 5

// runsOnce tells all stories of `monopod once`, some at the same time, and looks
// after each for what it left.
func runsOnce(w *world) {
	slots := make(chan struct{}, atOnce)
	w.Run("stories", func(t *testing.T) {
		for _, s := range onceStories() {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				s.tell(newOnceRun(t, w, s.name))
			})
		}
	})
	w.Run("runtime", func(t *testing.T) { outlivesTheRuntime(newOnceRun(t, w, "runtime")) })
	for _, m := range w.hierarchies("") {
		if left, _ := filepath.Glob(m + w.agent.Cgroups + "/monopod*once*"); len(left) > 0 {
			w.Errorf("cgroups are left: %v", left)
		}
	}
}

// newOnceRun prepares a story, and looks at its end for what it left.
func newOnceRun(t *testing.T, w *world, name string) *onceRun {
	o := &onceRun{T: t, w: w, ns: "once-" + strings.ToLower(name), dir: filepath.Join(w.agent.Dir, name)}
	check(t, os.Mkdir(o.dir, 0o755))
	check(t, os.Mkdir(o.tmp(), 0o755))
	t.Cleanup(func() {
		o.nothingIsLeft()
		if t.Failed() { // the stories beside it go on
			_ = w.rig.CRI.RemoveAll(context.Background(), o.ns)
		}
		if t.Failed() {
			t.Logf("code %d\nout:\n%s\nerr:\n%s", o.code, &o.out, &o.err)
		}
	})
	return o
}

func (o *onceRun) tmp() string { return filepath.Join(o.dir, "tmp") }

// pod returns the manifest of a pod of one container main, a shell script.
func (o *onceRun) pod(name, policy, script string, more ...string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  hostNetwork: true
  restartPolicy: %s
  terminationGracePeriodSeconds: 10
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, %q]
  %s
`, name, o.ns, policy, script, strings.Join(more, "\n  "))
}

// write writes a manifest and returns its path.
func (o *onceRun) write(file, text string) string {
	o.Helper()
	path := filepath.Join(o.dir, file)
	check(o.T, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// start starts monopod once on these manifests, each in a file.
func (o *onceRun) start(manifests ...string) {
	o.Helper()
	var files []string
	for k, m := range manifests {
		files = append(files, o.write(fmt.Sprintf("%d.yaml", k), m))
	}
	o.launch(files...)
}

func (o *onceRun) launch(args ...string) {
	o.Helper()
	all := []string{"once"}
	if !slices.Contains(o.flags, "--remove") {
		all = append(all, "--runtime-endpoint", o.w.agent.Endpoint, "--node-name", rig.Node, "--cgroup-root", o.w.agent.Cgroups)
	}
	o.cmd = exec.Command(o.w.agent.Binary, slices.Concat(all, o.flags, args)...)
	o.cmd.Env = append(os.Environ(), "TMPDIR="+o.tmp())
	o.cmd.Stdin = strings.NewReader(o.stdin)
	o.cmd.Stdout, o.cmd.Stderr = &o.out, &o.err
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(o.T, o.cmd.Start())
	cmd := o.cmd
	o.Cleanup(func() { _ = cmd.Process.Kill() })
}

// ends waits for the end and checks the exit code.
func (o *onceRun) ends(code int) {
	o.Helper()
	late := time.AfterFunc(limit, func() { _ = o.cmd.Process.Signal(syscall.SIGQUIT) })
	defer late.Stop()
	err := o.cmd.Wait()
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		o.Fatal(err)
	}
	if o.code = o.cmd.ProcessState.ExitCode(); o.code != code {
		o.Errorf("exit code %d, want %d", o.code, code)
	}
}

// run is start and ends.
func (o *onceRun) run(code int, manifests ...string) {
	o.Helper()
	o.start(manifests...)
	o.ends(code)
}

// prints checks that standard output has these lines, in this order.
func (o *onceRun) prints(lines ...string) {
	o.Helper()
	rest := "\n" + o.out.String()
	for _, l := range lines {
		_, after, ok := strings.Cut(rest, "\n"+l+"\n")
		if !ok {
			o.Errorf("does not print %q", l)
			return
		}
		rest = "\n" + after
	}
}

// says checks that standard error has these words.
func (o *onceRun) says(words ...string) {
	o.Helper()
	for _, word := range words {
		if !strings.Contains(o.err.String(), word) {
			o.Errorf("does not say %q", word)
		}
	}
}

// hears waits until standard error has these words.
func (o *onceRun) hears(words string) {
	o.Helper()
	check(o.T, rig.Until(o.Context(), limit, func() error {
		if !strings.Contains(o.err.String(), words) {
			return fmt.Errorf("it does not say %q", words)
		}
		return nil
	}))
}

// has waits until a container has made a file in /o, which shared puts there.
func (o *onceRun) has(file string) {
	o.Helper()
	check(o.T, rig.Until(o.Context(), limit, func() error {
		_, err := os.Stat(filepath.Join(o.dir, file))
		return err
	}))
}

// shared makes the story's folder the container's /o.
func (o *onceRun) shared() []string {
	return []string{"  volumeMounts: [{name: o, mountPath: /o}]", "volumes: [{name: o, hostPath: {path: " + o.dir + "}}]"}
}

// runs waits until so many containers of the namespace run.
func (o *onceRun) runs(count int) {
	o.Helper()
	err := rig.Until(o.Context(), limit, func() error {
		all, err := o.w.rig.CRI.Containers(o.Context(), o.ns)
		check(o.T, err)
		if n := len(slices.DeleteFunc(all, func(c rig.Container) bool { return c.State != "Running" })); n != count {
			return fmt.Errorf("%d containers run, want %d", n, count)
		}
		return nil
	})
	check(o.T, err)
}

func (o *onceRun) signal(s syscall.Signal) { check(o.T, o.cmd.Process.Signal(s)) }

// nothingIsLeft looks into the runtime, at mounts and files.
func (o *onceRun) nothingIsLeft() {
	ctx := context.Background()
	ss, err := o.w.rig.CRI.Sandboxes(ctx, o.ns)
	check(o.T, err)
	cs, err := o.w.rig.CRI.Containers(ctx, o.ns)
	check(o.T, err)
	files, _ := filepath.Glob(o.tmp() + "/*")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if len(ss)+len(cs)+len(files) > 0 || strings.Contains(string(mounts), o.dir+"/") {
		o.Errorf("left: sandboxes %v, containers %v, files %v, or mounts", ss, cs, files)
	}
}

// outlivesTheRuntime has containerd killed under a run: once it comes back, and
// once the run is given up meanwhile.
func outlivesTheRuntime(o *onceRun) {
	o.start(o.pod("job", "Never", "for i in 1 2 3 4; do echo $i; sleep 1; done; exit 4"))
	o.runs(1)
	o.w.rig.Runtime.Kill()
	time.Sleep(time.Second) // for the run to miss it
	check(o.T, o.w.rig.Runtime.Start(o.Context()))
	o.ends(4)
	o.prints("job/main | 1", "job/main | 2", "job/main | 3", "job/main | 4")

	o.start(o.pod("left", "Never", "trap 'exit 0' TERM; sleep 3600 & wait"))
	o.runs(1)
	o.w.rig.Runtime.Kill()
	for _, answer := range []string{"what runs is stopped", "kills what still runs", "gives up"} {
		o.signal(syscall.SIGTERM)
		o.hears(answer)
	}
	o.ends(143)
	dirs, _ := filepath.Glob(o.tmp() + "/*")
	if len(dirs) != 1 {
		o.Fatalf("folders %v, want one", dirs)
	}
	o.says("something is left of pod "+o.ns+"/left-"+rig.Node, "`monopod once --remove "+dirs[0]+"`")
	check(o.T, o.w.rig.Runtime.Start(o.Context()))
	o.flags = []string{"--remove", dirs[0]}
	o.launch()
	o.ends(0)
}
