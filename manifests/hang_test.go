package manifests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hang mounts a file system on dir whose server never answers, until heal is called: then calls
// fail, and dir is as before.
func hang(t *testing.T, dir string) (heal func()) {
	t.Helper()
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("a file system that hangs needs root and FUSE: %v", err)
	}
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())
	if err := unix.Mount("monopod-test", dir, "fuse", 0, data); err != nil {
		server.Close()
		t.Skipf("a file system that hangs needs root and FUSE: %v", err)
	}
	heal = func() {
		server.Close()
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
	t.Cleanup(heal)
	return heal
}

// often looks through the folder so often that the test need not wait for it.
func often(c *SourceConfig) { c.Rescan = 50 * time.Millisecond }

func TestAFileOfTheKernelStopsOnlyItself(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	for _, name := range []string{"kmsg", "version", "self/status"} { // the first never ends
		must(t, os.Symlink("/proc/"+name, filepath.Join(dir, filepath.Base(name)+".yaml")))
	}
	must(t, os.Symlink("/sys/kernel/uevent_seqnum", filepath.Join(dir, "sys.yaml")))
	f := watchFolder(t, dir, nil)
	f.until("a@a.yaml=busybox bad:kmsg.yaml bad:status.yaml bad:sys.yaml bad:version.yaml")
	want := "cannot be read: a file of the kernel (proc): remove it from the folder"
	if got := f.last.Files[1].Problems[0].Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, path := range []string{"/proc/kmsg", "/sys/kernel/uevent_seqnum"} {
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "a file of the kernel") {
			t.Errorf("%s is read: %v", path, err)
		}
	}
}

func TestAFileThatHangsStopsOnlyItself(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	fill(t, dir, "a")
	heal := hang(t, far)
	for k := range 3 {
		must(t, os.Symlink(filepath.Join(far, "x"), filepath.Join(dir, fmt.Sprintf("far%d.yaml", k))))
	}
	f := watchFolder(t, dir, often)
	f.until("a@a.yaml=busybox bad:far0.yaml bad:far1.yaml bad:far2.yaml ?")
	if got := f.last.Files[1].Problems[0].Message; got != "cannot be read: its file system gives no answer; it is read as soon as there is one" {
		t.Errorf("the problem is %q", got)
	}
	if !f.last.Read {
		t.Error("the folder does not count as read")
	}
	before := runtime.NumGoroutine()
	f.write("b.yaml", podYAML("b"))
	f.until("a@a.yaml=busybox b@b.yaml=busybox bad:far0.yaml bad:far1.yaml bad:far2.yaml ?")
	time.Sleep(10 * 50 * time.Millisecond) // ten more looks through the folder
	if now := runtime.NumGoroutine(); now > before+1 {
		t.Errorf("%d goroutines, %d before", now, before)
	}
	must(t, os.Remove(f.path("far0.yaml")))
	f.write("far1.yaml", podYAML("c")) // another file than the one that hangs
	f.until("a@a.yaml=busybox b@b.yaml=busybox c@far1.yaml=busybox bad:far2.yaml ?")
	heal()
	fill(t, far, "x")
	must(t, os.Rename(filepath.Join(far, "x.yaml"), filepath.Join(far, "x")))
	f.until("a@a.yaml=busybox b@b.yaml=busybox c@far1.yaml=busybox x@far2.yaml=busybox")
}

func TestThePodOfAFileThatHangsRunsOn(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	fill(t, dir, "a")
	fill(t, far, "b")
	must(t, os.Symlink(filepath.Join(far, "b.yaml"), filepath.Join(dir, "b.yaml")))
	f := watchFolder(t, dir, often)
	f.until("a@a.yaml=busybox b@b.yaml=busybox")
	heal := hang(t, far)
	f.until("a@a.yaml=busybox b@b.yaml=busybox held:b.yaml bad:b.yaml ?")
	must(t, os.Remove(f.path("a.yaml")))
	f.until("b@b.yaml=busybox held:b.yaml bad:b.yaml ?")
	heal()
	f.until("b@b.yaml=busybox")
}

func TestAFolderThatHangsRemovesNothing(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a", "b")
	strict := func(c *SourceConfig) { often(c); c.Strict, c.Root = true, c.Dir+".root" }
	f := watchFolder(t, dir, strict)
	f.until("a@a.yaml=busybox b@b.yaml=busybox")
	heal := hang(t, dir)
	f.until("a@a.yaml=busybox b@b.yaml=busybox folder ?")
	if got := f.last.Problems[0].Message; got != "cannot be read, pods known from before keep running: its file system gives no answer; it is read as soon as there is one" {
		t.Errorf("the problem is %q", got)
	}
	heal()
	must(t, os.Remove(filepath.Join(dir, "b.yaml")))
	f.until("a@a.yaml=busybox")
}

// A folder of links to a server that is gone costs a moment, not a wait for each of them, and
// no more threads than a bound.
func TestManyFilesThatHangAreNotWaitedForEach(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	fill(t, dir, "a", "b", "c")
	hang(t, far)
	for k := range mostHanging + 50 {
		must(t, os.Symlink(filepath.Join(far, "x"), filepath.Join(dir, fmt.Sprintf("far%d.yaml", k))))
	}
	const each = (mostHanging + 50) * patience // what it takes to wait for each
	begin, before := time.Now(), runtime.NumGoroutine()
	p := at(t, dir, nil)
	if took := time.Since(begin); took > each/8 {
		t.Errorf("the first look takes %s", took)
	}
	if n := runtime.NumGoroutine() - before; n > mostHanging+5 {
		t.Errorf("%d more goroutines", n)
	}
	begin = time.Now()
	p.lookAgain()
	if took := time.Since(begin); took > patience {
		t.Errorf("another look takes %s", took)
	}
	if len(p.last.Pods) != 3 || len(p.last.Files) != mostHanging+53 {
		t.Errorf("%d pods, %d files", len(p.last.Pods), len(p.last.Files))
	}
}

// Who may write what gives no answer is not known: a new agent does not start with that.
func TestWhoMayWriteWhatHangsIsNotKnown(t *testing.T) {
	dir, far := t.TempDir(), t.TempDir()
	fill(t, dir, "a", "b")
	hang(t, far)
	must(t, errors.Join(os.Symlink(far+"/x", dir+"/far.yaml"), os.Chmod(dir+"/b.yaml", 0o666)))
	found := Writable(dir, dir+".root")
	if len(found) != 2 || found[0].File != dir+"/b.yaml" || found[1].File != dir+"/far.yaml" || !strings.Contains(found[1].Message, "no answer") {
		t.Errorf("found %v", found)
	}
}

// What hangs in the folder itself, as a mount there does, stops only itself, too.
func TestANameThatHangsStopsOnlyItself(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a", "b")
	f := watchFolder(t, dir, often)
	f.until("a@a.yaml=busybox b@b.yaml=busybox")
	must(t, os.Mkdir(f.path("far.yaml"), 0o700))
	heal := hang(t, f.path("far.yaml"))
	f.write("c.yaml", podYAML("c"))
	f.until("a@a.yaml=busybox b@b.yaml=busybox c@c.yaml=busybox bad:far.yaml ?")
	time.Sleep(time.Second) // what goes now did not move there
	must(t, os.Remove(f.path("b.yaml")))
	f.until("a@a.yaml=busybox c@c.yaml=busybox bad:far.yaml ?")
	heal()
	must(t, os.Remove(f.path("far.yaml")))
	f.until("a@a.yaml=busybox c@c.yaml=busybox")
}
