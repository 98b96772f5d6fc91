//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"monopod/agent/e2e/rig"
)

// config runs the agent with a file of settings.
func (w *world) config(text string) {
	w.Helper()
	path := filepath.Join(w.agent.Dir, "config.yaml")
	check(w.T, os.WriteFile(path, []byte(text), 0o644))
	w.agent.Flags = append(w.agent.Flags, "--config", path)
}

// logFile returns where the log of a container's attempt is.
func (w *world) logFile(pod string, attempt int) string {
	w.Helper()
	dirs, err := filepath.Glob(filepath.Join(w.agent.PodLogs, w.ns+"_"+name(pod)+"_*", "main"))
	if err != nil || len(dirs) != 1 {
		w.Fatalf("log folders of %s: %v, %v", pod, dirs, err)
	}
	return filepath.Join(dirs[0], fmt.Sprintf("%d.log", attempt))
}

// talker writes 200 MB in numbered lines, 1 MB at a time, then goes on living.
const (
	talkerLines = 200_000
	talker      = `
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "i=0; while [ $i -lt 200 ]; do awk -v i=$i 'BEGIN{for(n=i*1000;n<(i+1)*1000;n++) printf \"%%0%dd\\n\", n}'; i=$((i+1)); sleep 0.1; done; exec sleep 3600"]
`
)

// rotatesLogs has a container write much more than its logs may take, while the
// agent is killed now and then, and once between the two steps of a rotation.
func rotatesLogs(w *world) {
	const maxSize, maxFiles, interval = 8 << 20, 4, time.Second
	w.config(fmt.Sprintf("containerLogMaxSize: %d\ncontainerLogMaxFiles: %d\ncontainerLogMonitorInterval: %s\n", maxSize, maxFiles, interval))
	w.start()
	w.write("talker", fmt.Sprintf(talker, lineLength))
	before, idle := w.running("talker"), w.peak()
	log := w.logFile("talker", 0)
	f, d := &tail{path: log}, newDisk(log)
	part := func(until int) {
		w.Helper()
		f.follow(time.Now().Add(3*limit), func() bool { d.look(f.bytes); return f.next >= until })
		if f.err != nil || f.next < until {
			w.Fatalf("%d lines were read of %d, %v", f.next, until, f.err)
		}
	}
	for k := range 3 {
		part((k + 1) * talkerLines / 5)
		w.kill()
		if k == 1 { // as one leaves it that is killed between renaming and reopening
			check(w.T, os.Rename(log, log+time.Now().Add(time.Second).Format(".20060102-150405")))
		}
		check(w.T, w.agent.Launch())
	}
	part(talkerLines)
	rotations := f.files - 1
	w.Logf("%d rotations; at most %d MB on disk of %d MB, %d MB in %s; the agent took %s at most, %s at first", rotations, d.most>>20, f.bytes>>20, d.worth>>20, d.window, w.peak(), idle)
	if rotations < 6 {
		w.Errorf("only %d rotations", rotations)
	}
	if d.most > maxFiles*maxSize+d.worth {
		w.Errorf("the logs took %d MB, more than %d times %d MB and the %d MB of an interval", d.most>>20, maxFiles, maxSize>>20, d.worth>>20)
	}
	w.wholeOnDisk(log, maxFiles, maxSize)
	w.same(before)
}

// wholeOnDisk fails unless the logs on disk hold the last lines without a gap.
func (w *world) wholeOnDisk(log string, most int, size int64) {
	w.Helper()
	var all []string
	w.until("the last rotation is over", func() error {
		var err error
		if all, err = filepath.Glob(log + "*"); err != nil {
			return rig.Final(err)
		}
		if i, err := os.Stat(log); err != nil || i.Size() >= size || len(all) > most {
			return fmt.Errorf("there are %s, %v", all, err)
		}
		return nil
	})
	f := &tail{next: -1}
	for _, path := range append(all[1:], all[0]) {
		b := w.unzipped(path)
		if f.next < 0 { // it may begin with the rest of a line
			_, b, _ = bytes.Cut(b, []byte("\n"))
			_, err := fmt.Sscanf(string(b[bytes.Index(b, []byte(" F "))+3:][:lineLength]), "%d", &f.next)
			check(w.T, err)
		}
		f.take(b)
	}
	if f.err != nil || f.next != talkerLines {
		w.Errorf("on disk: up to line %d, %v", f.next, f.err)
	}
}

func (w *world) unzipped(path string) []byte {
	w.Helper()
	b, err := os.ReadFile(path)
	check(w.T, err)
	if !strings.HasSuffix(path, ".gz") {
		return b
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	check(w.T, err)
	b, err = io.ReadAll(z)
	check(w.T, err)
	return b
}

// peak returns the most memory that the agent had resident.
func (w *world) peak() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.agent.Pid()))
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(text)
		}
	}
	return "?"
}

// disk watches what the files of a log take.
type disk struct {
	log    string
	window time.Duration
	most   int64 // that all took
	worth  int64 // the most that was written within the window
	at     []time.Time
	bytes  []int64 // written until then
}

// newDisk: a round is an interval after the one before has ended; one that was
// just missed because the agent was killed costs its start as well.
func newDisk(log string) *disk { return &disk{log: log, window: 2 * time.Second} }

func (d *disk) look(written int64) {
	var sum int64
	files, _ := filepath.Glob(d.log + "*")
	for _, path := range files {
		if i, err := os.Stat(path); err == nil {
			sum += i.Size()
		}
	}
	d.most = max(d.most, sum)
	now := time.Now()
	d.at, d.bytes = append(d.at, now), append(d.bytes, written)
	for now.Sub(d.at[0]) > d.window {
		d.at, d.bytes = d.at[1:], d.bytes[1:]
	}
	d.worth = max(d.worth, written-d.bytes[0])
}

// keepsTheLastDead has a container crash again and again: of those before it as
// many stay as were asked for, with their logs, the runtime's and the agent's.
func keepsTheLastDead(w *world) {
	w.config("deadContainersPerContainer: 2\ncrashLoopBackOff: {firstContainerRestartPeriod: 100ms, maxContainerRestartPeriod: 1s}\n")
	w.start()
	w.write("crash", `
  hostNetwork: true
  containers:
  - {name: main, image: "registry.test/busybox:1", command: [sh, -c, echo it ends; exit 1]}
`)
	w.until("the sixth attempt is there", func() error {
		if cs := w.containers("crash"); len(cs) == 0 || cs[len(cs)-1].Attempt < 5 {
			return fmt.Errorf("containers are %+v", cs)
		}
		return nil
	})
	w.until("two dead ones are left", func() error {
		cs := w.containers("crash")
		logs, err := filepath.Glob(filepath.Join(filepath.Dir(w.logFile("crash", 0)), "*.log"))
		if dead := len(cs); err != nil || dead < 2 || dead > 3 || len(logs) > 3 {
			return fmt.Errorf("containers are %+v, logs %s, %v", cs, logs, err)
		}
		return nil
	})
}

// removesWhatAKilledAgentLeft starts with what one leaves that is killed while
// it removes a pod, and with what is another's.
func removesWhatAKilledAgentLeft(w *world) {
	ours, theirs := filepath.Join(w.agent.PodLogs, w.ns+"_gone_aaaa", "main"), filepath.Join(w.agent.PodLogs, "x_theirs_bbbb", "main")
	for _, dir := range []string{ours, theirs, filepath.Join(w.agent.Root, "pods", "aaaa", "volumes", "kubernetes.io~empty-dir", "v")} {
		check(w.T, os.MkdirAll(dir, 0o755))
	}
	check(w.T, os.WriteFile(filepath.Join(ours, "0.log"), []byte("x"), 0o644))
	w.start()
	w.write("one", sleeper)
	w.running("one")
	if left, _ := filepath.Glob(w.agent.Root + "/pods/aaaa"); len(left) > 0 {
		w.Errorf("still there: %s", left)
	}
	if left, _ := filepath.Glob(filepath.Dir(ours)); len(left) > 0 {
		w.Errorf("still there: %s", left)
	}
	if _, err := os.Stat(theirs); err != nil {
		w.Errorf("another's logs: %v", err)
	}
}
