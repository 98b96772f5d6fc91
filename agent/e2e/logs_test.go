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

// logFile returns where the log of a container's attempt is.
func (w *world) logFile(pod string, attempt int) string {
	w.Helper()
	dirs, err := filepath.Glob(filepath.Join(w.agent.PodLogs, w.ns+"_"+name(pod)+"_*", "main"))
	if err != nil || len(dirs) != 1 {
		w.Fatalf("log folders of %s: %v, %v", pod, dirs, err)
	}
	return filepath.Join(dirs[0], fmt.Sprintf("%d.log", attempt))
}

// How logs are to be kept in rotatesLogs, and how far its container may write.
const (
	logMaxSize  = 8 << 20
	logMaxFiles = 4
	lineOnDisk  = lineLength + 46           // with the runtime's time, stream and tag, and the line's end
	linesPerLog = logMaxSize/lineOnDisk + 1 // with which a log is due, or a little earlier
	linesAhead  = linesPerLog / 2           // that may be written while it is rotated, too few for another rotation
)

// talker writes numbered lines, 1 MB at a time, as many of those as /pace/allowed
// says.
const talker = `
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.test/busybox:1
    command: [sh, -c, "i=0; while :; do while [ $i -ge $(cat /pace/allowed) ]; do sleep 0.1; done; awk -v i=$i 'BEGIN{for(n=i*1000;n<(i+1)*1000;n++) printf \"%%0%dd\\n\", n}'; i=$((i+1)); done"]
    volumeMounts: [{name: pace, mountPath: /pace}]
  volumes:
  - {name: pace, hostPath: {path: %s}}
`

// pace lets a talker write on with each rotation that was seen: as much as makes
// the next one due, and some more while it is carried out. So it is known how
// many lines a log can have at most, however long anything takes.
type pace struct {
	dir   string
	files int // that were seen when it was last allowed more
	most  int // the lines that are allowed
}

// allow returns an error if the file cannot be written.
func (p *pace) allow(f *tail) error {
	first := f.first
	switch {
	case p.most == 0 || f.files > p.files:
	case f.next == p.most && f.moved(): // all was written before the rotation: the next log has nothing to be seen by
		first = f.next
	default:
		return nil
	}
	p.files, p.most = f.files, (first+linesPerLog+linesAhead)/1000*1000
	temp := filepath.Join(p.dir, "next")
	if err := os.WriteFile(temp, fmt.Appendln(nil, p.most/1000), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(p.dir, "allowed"))
}

// rotatesLogs has a container write much more than its logs may take, and on while
// they are rotated; the agent is killed now and then, and once between the two
// steps of a rotation.
func rotatesLogs(w *world) {
	w.agent.Settings += fmt.Sprintf("containerLogMaxSize: %d\ncontainerLogMaxFiles: %d\ncontainerLogMonitorInterval: 1s\n", logMaxSize, logMaxFiles)
	p := &pace{dir: filepath.Join(w.agent.Dir, "pace")}
	check(w.T, os.Mkdir(p.dir, 0o755))
	check(w.T, p.allow(&tail{}))
	w.start()
	w.write("talker", fmt.Sprintf(talker, lineLength, p.dir))
	before, idle := w.running("talker"), w.peak()
	log := w.logFile("talker", 0)
	f, d := &tail{path: log}, &disk{log: log}
	part := func(what string, done func() bool) {
		w.Helper()
		f.follow(time.Now().Add(3*limit), func() bool {
			d.look()
			check(w.T, p.allow(f))
			return done()
		})
		if f.err != nil || !done() {
			w.Fatalf("%s: %d rotations were seen, %d lines were read of %d, %v", what, f.files-1, f.next, p.most, f.err)
		}
	}
	for k := range 3 {
		part("before a kill", func() bool { return f.files-1 >= 2*(k+1) })
		w.kill()
		if k == 1 { // as one leaves it that is killed between renaming and reopening
			check(w.T, os.Rename(log, log+time.Now().Add(time.Second).Format(".20060102-150405")))
		}
		check(w.T, w.agent.Launch())
	}
	part("after the kills", func() bool { return f.files-1 >= 8 })
	part("to the end", func() bool { return f.next >= p.most })
	w.Logf("%d rotations; at most %d files of %d MB on disk of %d MB; the agent took %s at most, %s at first",
		f.files-1, d.files, d.most>>20, f.bytes>>20, w.peak(), idle)
	if most := int64(logMaxFiles * (linesPerLog + linesAhead) * lineOnDisk); d.most > most {
		w.Errorf("the logs took %d bytes, want at most %d as long as they can get, %d", d.most, logMaxFiles, most)
	}
	if d.files > logMaxFiles+1 { // that of the rotation that was broken off goes with the next one
		w.Errorf("there were %d logs, want at most %d", d.files, logMaxFiles)
	}
	w.wholeOnDisk(log, p.most)
	w.same(before)
}

// wholeOnDisk fails unless the logs on disk, as many as may be, hold the last
// lines without a gap.
func (w *world) wholeOnDisk(log string, lines int) {
	w.Helper()
	var all []string
	w.until("the last rotation is over", func() error {
		var err error
		if all, err = filepath.Glob(log + "*"); err != nil {
			return rig.Final(err)
		}
		if i, err := os.Stat(log); err != nil || i.Size() >= logMaxSize || len(all) != logMaxFiles {
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
	if f.err != nil || f.next != lines {
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
	log   string
	most  int64 // bytes that all took
	files int   // the most that there were, of one that is being compressed one
}

func (d *disk) look() {
	var sum int64
	names := map[string]bool{}
	files, _ := filepath.Glob(d.log + "*")
	for _, path := range files {
		names[strings.TrimSuffix(strings.TrimSuffix(path, ".tmp"), ".gz")] = true
		if i, err := os.Stat(path); err == nil {
			sum += i.Size()
		}
	}
	d.most, d.files = max(d.most, sum), max(d.files, len(names))
}

// keepsTheLastDead has a container crash again and again: of those before it as
// many stay as were asked for, with their logs, the runtime's and the agent's.
func keepsTheLastDead(w *world) {
	w.agent.Settings += "deadContainersPerContainer: 2\ncrashLoopBackOff: {firstContainerRestartPeriod: 100ms, maxContainerRestartPeriod: 1s}\n"
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
	check(w.T, os.WriteFile(filepath.Join(w.agent.Root, "instance"), []byte("0123456789abcdef\n"), 0o600)) // else the pod is another agent's
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
