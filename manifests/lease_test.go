package manifests

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openForWriting opens a file as a writer does: no lease is given any more, as none
// ever is on NFSv4 and CIFS.
func openForWriting(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// pass lets the looker look for so long, as often as it wants to.
func (p *looker) pass(d time.Duration) {
	for end := p.now.Add(d); p.now.Before(end); {
		if p.now = p.now.Add(10 * time.Millisecond); !p.now.Before(p.wake()) {
			p.step(p.now)
		}
	}
}

func TestAFileWithoutALeaseIsReadOnceItRests(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a", "b")
	openForWriting(t, filepath.Join(dir, "a.yaml"))
	p := at(t, dir, nil)
	p.pass(time.Second)
	if got := describeSnapshot(*p.last); got != "a@a.yaml=busybox b@b.yaml=busybox ?" {
		t.Errorf("after a second: %q", got)
	}
	p.pass(noWriter)
	if got := describeSnapshot(*p.last); got != "a@a.yaml=busybox b@b.yaml=busybox" || !p.last.Read {
		t.Errorf("after %s: %q", noWriter, got)
	}
	p.full = true
	p.step(p.now) // another look at the same version starts no other wait
	if got := describeSnapshot(*p.last); got != "a@a.yaml=busybox b@b.yaml=busybox" {
		t.Errorf("looked at again: %q", got)
	}
}

// A pod is gone when its file without a lease does not name it any more.
func TestAFileWithoutALeaseProvesARemoval(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "m.yaml"), []byte(podYAML("a")+"---\n"+podYAML("b")), 0o644))
	p := at(t, dir, nil)
	must(t, os.WriteFile(filepath.Join(dir, "m.yaml"), []byte(podYAML("a")), 0o644))
	openForWriting(t, filepath.Join(dir, "m.yaml"))
	p.full = true
	p.step(p.now)
	p.pass(time.Second)
	if got := describeSnapshot(*p.last); !strings.HasPrefix(got, "a@m.yaml=busybox b@m.yaml=busybox") {
		t.Errorf("after a second: %q", got)
	}
	p.pass(noWriter)
	if got := describeSnapshot(*p.last); got != "a@m.yaml=busybox" {
		t.Errorf("after %s: %q", noWriter, got)
	}
}

// While the folder is away nothing in it is waited for: it is looked for again after a while, and
// not without a pause.
func TestAFolderThatIsAwayIsNotLookedForWithoutAPause(t *testing.T) {
	for _, row := range []string{"away", "a file of another kind", "another folder, without a manifest"} {
		t.Run(row, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "m")
			must(t, os.Mkdir(dir, 0o755))
			fill(t, dir, "a")
			p := at(t, dir, nil)
			openForWriting(t, filepath.Join(dir, "a.yaml"))
			p.full = true
			p.step(p.now)
			if p.files[filepath.Join(dir, "a.yaml")].retry.IsZero() {
				t.Fatal("the file is not waited for")
			}
			must(t, os.Rename(dir, dir+".away"))
			switch row {
			case "a file of another kind":
				must(t, unix.Mkfifo(dir, 0o644))
			case "another folder, without a manifest":
				must(t, os.Mkdir(dir, 0o755))
			}
			steps := 0
			for end := p.now.Add(10 * retryFolder); p.now.Before(end) && steps < 1000; steps++ {
				p.step(p.now)
				p.now = p.now.Add(max(p.wake().Sub(p.now), 0))
			}
			if steps > 60 {
				t.Errorf("%d steps in %s", steps, 10*retryFolder)
			}
			if got := describeSnapshot(*p.last); !strings.HasPrefix(got, "a@a.yaml=busybox") {
				t.Errorf("the pods are %q", got)
			}
		})
	}
}

// A file that changes again and again is waited for, which is said once.
func TestALongWaitForAWriterIsSaid(t *testing.T) {
	dir := t.TempDir()
	w := openForWriting(t, filepath.Join(dir, "m.yaml"))
	var log bytes.Buffer
	p := at(t, dir, func(c *SourceConfig) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	begin := p.now
	for p.now.Sub(begin) < 2*noWriter {
		_, err := w.WriteString("# a line\n")
		must(t, err)
		p.pass(100 * time.Millisecond)
	}
	problems := p.last.Files[0].Problems
	said := strings.Count(log.String(), "again and again")
	if said != 1 || len(problems) != 1 || !problems[0].Warning || !strings.Contains(problems[0].Message, "changes it again and again") {
		t.Errorf("problems %v, log %s", problems, &log)
	}
	_, err := w.WriteString(podYAML("a"))
	must(t, err)
	p.pass(2 * noWriter)
	if got := describeSnapshot(*p.last); got != "a@m.yaml=busybox" || len(p.last.Files[0].Problems) > 0 {
		t.Errorf("once it rests: %q, problems %v", got, p.last.Files[0].Problems)
	}
}

// The longer a file changes, the more rarely it is looked at.
func TestAFileThatChangesForLongIsLookedAtRarely(t *testing.T) {
	dir := t.TempDir()
	w := openForWriting(t, filepath.Join(dir, "m.yaml"))
	p := at(t, dir, nil)
	looks := 0
	for begin := p.now; p.now.Sub(begin) < time.Minute; p.now = p.wake() {
		_, err := w.WriteString("# a line\n")
		must(t, err)
		p.step(p.now)
		looks++
	}
	if looks > 200 {
		t.Errorf("%d looks in a minute", looks)
	}
}
