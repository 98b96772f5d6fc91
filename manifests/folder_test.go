package manifests

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"monopod/manifests/decode"
)

func TestAnUnmountedFolderRemovesNothing(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir)
	fill(t, dir, "a", "b")
	p := at(t, dir, nil)
	p.expect("a@a.yaml=busybox b@b.yaml=busybox")
	must(t, unix.Unmount(dir, unix.MNT_DETACH))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox folder ?")
	must(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(podYAML("c")), 0o644)) // it runs, and proves nothing of the others
	p.expect("a@a.yaml=busybox b@b.yaml=busybox c@c.yaml=busybox folder ?")
}

func TestAFolderMountedAgainIsReadAsBefore(t *testing.T) {
	base, link := t.TempDir(), filepath.Join(t.TempDir(), "m")
	fill(t, base, "a", "b")
	point(t, link, base)
	p := at(t, link, nil)
	point(t, link, elsewhere(t))
	p.expect("a@a.yaml=busybox b@b.yaml=busybox folder ?")
	must(t, os.Remove(filepath.Join(base, "b.yaml")))
	point(t, link, base)
	p.now = p.now.Add(2 * retryFolder)
	p.step(p.now)
	if got := describeSnapshot(*p.last); got != "a@a.yaml=busybox b@b.yaml=busybox" {
		t.Errorf("seen at once: %q", got)
	}
	p.expect("a@a.yaml=busybox")
}

// What events bring of another file system is not taken for the folder's.
func TestAnOldFileUnderTheMountRemovesNothing(t *testing.T) {
	base, far, link := t.TempDir(), elsewhere(t), filepath.Join(t.TempDir(), "m")
	must(t, os.WriteFile(base+"/m.yaml", []byte(podYAML("a")+"---\n"+podYAML("b")), 0o644))
	must(t, os.WriteFile(far+"/m.yaml", []byte(podYAML("a")), 0o644))
	point(t, link, base)
	p := at(t, link, nil)
	point(t, link, far)
	p.dirty[filepath.Join(link, "m.yaml")] = true
	p.step(p.now)
	p.expect("a@m.yaml=busybox b@m.yaml=busybox folder ?")
	p.next(nil).expect("a@m.yaml=busybox b@m.yaml=busybox folder ?")
}

func TestAnOldSingleFileUnderTheMountRemovesNothing(t *testing.T) {
	base, far, link := t.TempDir(), elsewhere(t), filepath.Join(t.TempDir(), "m")
	must(t, os.WriteFile(base+"/pods", []byte(podYAML("a")+"---\n"+podYAML("b")), 0o644))
	must(t, os.WriteFile(far+"/pods", []byte(podYAML("a")), 0o644))
	point(t, link, base)
	p := at(t, link+"/pods", nil)
	point(t, link, far)
	p.expect("a@pods=busybox b@pods=busybox folder ?")
	point(t, link, base)
	must(t, os.WriteFile(base+"/pods", []byte(podYAML("a")), 0o644))
	p.expect("a@pods=busybox")
}

func TestTheNextAgentRemovesNothingBeforeTheMount(t *testing.T) {
	rows := []struct {
		name string
		dir  func(t *testing.T) string // where the folder is now
		want string
	}{
		{"an empty folder on another file system", elsewhere, "a@a.yaml=busybox b@b.yaml=busybox folder ?"},
		{"an empty folder on the same one", (*testing.T).TempDir, "a@a.yaml=busybox b@b.yaml=busybox folder ?"},
		{"no folder", func(t *testing.T) string { return t.TempDir() + "/none" }, "a@a.yaml=busybox b@b.yaml=busybox folder ?"},
		{"some of its manifests on another file system", func(t *testing.T) string {
			dir := elsewhere(t)
			fill(t, dir, "a")
			return dir
		}, "a@a.yaml=busybox b@b.yaml=busybox folder ?"},
		{"all of its manifests on another file system", func(t *testing.T) string {
			dir := elsewhere(t)
			fill(t, dir, "a", "b")
			return dir
		}, "a@a.yaml=busybox b@b.yaml=busybox"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			base, link := t.TempDir(), filepath.Join(t.TempDir(), "m")
			fill(t, base, "a", "b")
			point(t, link, base)
			p := at(t, link, nil)
			point(t, link, r.dir(t))
			for _, boot := range []string{"b1", "b2"} { // a restart, then a reboot
				p = p.next(func(c *SourceConfig) { c.Boot = boot })
				p.expect(r.want)
			}
			point(t, link, base)
			must(t, os.Remove(base+"/b.yaml"))
			p = p.next(nil)
			if strings.Contains(r.want, "folder") {
				p.expect("a@a.yaml=busybox")
			}
		})
	}
}

// An agent of before left pods and no record.
func TestWithoutARecordAnEmptyFolderProvesNothing(t *testing.T) {
	for _, r := range []struct {
		name, want string
		there      []string
	}{
		{"empty", "a@a.yaml=busybox b@b.yaml=busybox folder ?", nil},
		{"with a manifest", "a@a.yaml=busybox", []string{"a"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, r.there...)
			known := append(knownPods(t, dir+"/a.yaml", podYAML("a")), knownPods(t, dir+"/b.yaml", podYAML("b"))...)
			at(t, dir, func(c *SourceConfig) { c.Known = known }).expect(r.want)
		})
	}
	at(t, t.TempDir(), nil).expect("")
}

func TestADoubtIsSaidOnceWithWhatToDo(t *testing.T) {
	base, link := t.TempDir(), filepath.Join(t.TempDir(), "m")
	fill(t, base, "a")
	point(t, link, base)
	var log bytes.Buffer
	p := at(t, link, func(c *SourceConfig) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	p.record.Folder.FSType = unix.EXT4_SUPER_MAGIC
	point(t, link, elsewhere(t))
	p.expect("a@a.yaml=busybox folder ?")
	p.expect("a@a.yaml=busybox folder ?")
	want := link + ": is another file system than before (was ext4, is tmpfs): the pods of its files keep running, its objects and masks stay; " +
		"mount it again, or accept the removal with: monopod forget POD, configmap/NAME or secret/NAME"
	if got := p.last.Problems[0].Error(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if n := strings.Count(log.String(), "another file system"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &log)
	}
}

// A folder that is made again and filled slowly is not complete with its first file.
func TestAbsencesCountFromTheLastNewFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	fill(t, dir, "a", "b", "c")
	p := at(t, dir, nil)
	must(t, os.RemoveAll(dir))
	for _, pod := range []string{"a", "b", "c"} {
		fill(t, dir, pod)
		for range 2 {
			p.now, p.full = p.now.Add(p.Settle*2/3), true
			p.step(p.now)
			if n := len(p.last.Pods); n != 3 {
				t.Fatalf("%d pods when %s came", n, pod)
			}
		}
	}
	p.expect("a@a.yaml=busybox b@b.yaml=busybox c@c.yaml=busybox")
}

// The same, a file each second: what is missing waits for longer than in a folder that stays.
func TestAFolderMadeAgainAndFilledSlowlyRemovesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	fill(t, dir, "a", "b", "c", "old")
	p := at(t, dir, nil)
	must(t, os.RemoveAll(dir))
	pass := func(d time.Duration) { p.now, p.full = p.now.Add(d), true; p.step(p.now) }
	for _, pod := range []string{"a", "b", "c"} {
		fill(t, dir, pod)
		for range 3 {
			pass(time.Second)
			if n := len(p.last.Pods); n != 4 {
				t.Fatalf("%d pods when %s came", n, pod)
			}
		}
		if pod == "b" { // the next agent knows as much
			p = p.next(nil)
		}
	}
	const all = "a@a.yaml=busybox b@b.yaml=busybox c@c.yaml=busybox"
	for range 27 {
		pass(time.Second)
	}
	if got := describeSnapshot(*p.last); got != all+" old@old.yaml=busybox" {
		t.Errorf("29 s after the last file: %s", got)
	}
	pass(time.Until(p.wake()) - time.Until(p.now)) // no look is needed in between
	if got := describeSnapshot(*p.last); got != all {
		t.Errorf("30 s after the last file: %s", got)
	}
	must(t, os.Remove(filepath.Join(dir, "c.yaml"))) // the folder is one as any other now
	pass(time.Second)
	pass(p.Settle)
	if got := describeSnapshot(*p.last); got != "a@a.yaml=busybox b@b.yaml=busybox" {
		t.Errorf("in the folder that is complete: %s", got)
	}
}

func TestFoldersAreToldApart(t *testing.T) {
	disk := Folder{FSType: unix.XFS_SUPER_MAGIC, FSID: "1", Inode: 2, Born: 3, Device: 4, Boot: "b1"}
	nfs := Folder{FSType: unix.NFS_SUPER_MAGIC, Inode: 2, Device: 4, Boot: "b1"}
	with := func(d Folder, change func(*Folder)) Folder {
		change(&d)
		return d
	}
	for _, r := range []struct {
		name     string
		was, now Folder
		want     difference
	}{
		{"the same", disk, disk, sameFolder},
		{"another name", disk, with(disk, func(d *Folder) { d.Path = "/x" }), sameFolder},
		{"another device number after a reboot", disk, with(disk, func(d *Folder) { d.Device, d.Boot = 9, "b2" }), sameFolder},
		{"another type", disk, with(disk, func(d *Folder) { d.FSType = unix.TMPFS_MAGIC }), otherFileSystem},
		{"another id", disk, with(disk, func(d *Folder) { d.FSID = "2" }), otherFileSystem},
		{"another inode", disk, with(disk, func(d *Folder) { d.Inode = 9 }), otherFolder},
		{"the same inode given again", disk, with(disk, func(d *Folder) { d.Born = 9 }), otherFolder},
		{"a kernel that tells no birth", disk, with(disk, func(d *Folder) { d.Born = 0 }), sameFolder},
		{"no id", nfs, nfs, sameFolder},
		{"no id, another device", nfs, with(nfs, func(d *Folder) { d.Device = 9 }), otherFileSystem},
		{"no id, another boot", nfs, with(nfs, func(d *Folder) { d.Boot = "b2" }), otherFolder},
	} {
		if got := r.now.differs(r.was); got != r.want {
			t.Errorf("%s: %d, want %d", r.name, got, r.want)
		}
	}
}

func TestARecordThatCannotBeSavedIsTriedAgain(t *testing.T) {
	dir, full := t.TempDir(), true
	fill(t, dir, "a")
	var kept Record
	p := at(t, dir, func(c *SourceConfig) {
		c.Save = func(r Record) error {
			if full {
				return errors.New("no space left on device")
			}
			kept = r
			return nil
		}
	})
	p.expect("a@a.yaml=busybox")
	full = false
	p.expect("a@a.yaml=busybox")
	if kept.Folder == nil || *kept.Folder != *recordOf(t, dir).Folder {
		t.Errorf("saved %+v", kept.Folder)
	}
}

func TestAFolderMadeAgainAndEmptyRemovesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	fill(t, dir, "a")
	p := at(t, dir, nil)
	p.expect("a@a.yaml=busybox")
	must(t, os.RemoveAll(dir))
	fill(t, dir)
	p.expect("a@a.yaml=busybox folder ?")
	fill(t, dir, "b") // a valid manifest makes it the new folder
	p.expect("b@b.yaml=busybox")
}

func TestALinkToAnotherFolder(t *testing.T) {
	rows := []struct {
		name string
		pods []string // in the other folder
		far  bool     // it is on another file system
		want string
	}{
		{"with manifests", []string{"b"}, false, "b@b.yaml=busybox"},
		{"empty", nil, false, "a@a.yaml=busybox folder ?"},
		{"empty, far", nil, true, "a@a.yaml=busybox folder ?"},
		{"with other manifests, far", []string{"b"}, true, "a@a.yaml=busybox b@b.yaml=busybox folder ?"},
		{"with all manifests, far", []string{"a", "b"}, true, "a@a.yaml=busybox b@b.yaml=busybox"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			base, link := t.TempDir(), filepath.Join(t.TempDir(), "m")
			fill(t, base+"/one", "a")
			point(t, link, base+"/one")
			p := at(t, link, nil)
			p.expect("a@a.yaml=busybox")
			if r.far {
				base = elsewhere(t)
			}
			fill(t, base+"/two", r.pods...)
			point(t, link, base+"/two")
			p.expect(r.want)
		})
	}
}

// A file that is being written is not yet the manifest of that name that was read before.
func TestAFileInTheWritingIsNoValidManifest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	fill(t, dir, "a", "b")
	p := at(t, dir, nil)
	must(t, os.RemoveAll(dir))
	fill(t, dir)
	w, err := os.Create(filepath.Join(dir, "a.yaml"))
	must(t, err)
	defer w.Close()
	_, err = w.WriteString("kind: [\n")
	must(t, err)
	p.full = true
	p.step(p.now)
	p.expect("a@a.yaml=busybox b@b.yaml=busybox held:a.yaml bad:a.yaml folder ?")
}

// Who may put another folder in place of the owner's proves nothing by what is not in it.
func TestAFolderThatBelongsToAnotherUserNowProvesNoRemoval(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, who alone may give folders away")
	}
	taken := func(dir string) {
		must(t, errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755), os.Chown(dir, 1234, 0)))
		fill(t, dir, "a")
	}
	given := func(dir string) {
		must(t, errors.Join(os.Chown(dir, 1234, 0), os.Remove(filepath.Join(dir, "b.yaml"))))
	}
	for what, change := range map[string]func(string){"replaced": taken, "given away": given} {
		strict := func(c *SourceConfig) { c.Strict, c.Root = true, c.Dir+".root" }
		p := at(t, filepath.Join(t.TempDir(), "m"), strict)
		fill(t, p.dir, "a", "b")
		p.expect("a@a.yaml=busybox b@b.yaml=busybox")
		change(p.dir)
		p.expect("a@a.yaml=busybox b@b.yaml=busybox folder ?")
		p = p.next(strict)
		p.expect("a@a.yaml=busybox b@b.yaml=busybox folder ?")
		fill(t, p.dir, "b") // all is there: that does not make it the owner's
		p.expect("a@a.yaml=busybox b@b.yaml=busybox folder")
		must(t, os.Remove(filepath.Join(p.dir, "b.yaml")))
		p.expect("a@a.yaml=busybox b@b.yaml=busybox folder ?")
		want := "belongs to user 1234, and to user 0 before: the pods of its files keep running, its objects and masks stay; chown root " + p.dir + ", or accept the removal with: monopod forget POD, configmap/NAME or secret/NAME"
		if got := p.last.Problems[0].Message; got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		lax := p.next(nil) // where other users may write manifests by the settings
		lax.expect("a@a.yaml=busybox")
		must(t, os.Chown(p.dir, 0, 0))
		p.expect("a@a.yaml=busybox")
	}
}

// What is named like a manifest and is no file is not read, which a warning says; it keeps nothing
// from being complete.
func TestWhatIsNamedLikeAManifestAndIsNoFileIsWarnedOf(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", podYAML("a"))
	must(t, os.Mkdir(filepath.Join(p.dir, "sub.yaml"), 0o755))
	must(t, os.WriteFile(filepath.Join(p.dir, "sub.yaml", "b.yaml"), []byte(podYAML("b")), 0o644))
	must(t, syscall.Mkfifo(filepath.Join(p.dir, "pipe.yaml"), 0o644))
	must(t, os.Symlink("pipe.yaml", filepath.Join(p.dir, "link.yaml")))
	p.lookAgain()
	const rest = " or a link to one: a manifest is a file; remove it, or give it another name"
	var want []decode.Problem
	for _, of := range [][2]string{{"link.yaml", "pipe, socket or device"}, {"pipe.yaml", "pipe, socket or device"}, {"sub.yaml", "folder"}} {
		want = append(want, decode.Problem{File: filepath.Join(p.dir, of[0]), Warning: true, Message: "not read, as it is a " + of[1] + rest})
	}
	if got := p.last; !slices.Equal(got.Problems, want) || !got.Complete || len(got.Pods) != 1 {
		t.Errorf("%v; complete %v, %d pods; want %v", got.Problems, got.Complete, len(got.Pods), want)
	}
	must(t, os.RemoveAll(filepath.Join(p.dir, "sub.yaml")))
	p.place("sub.yaml", podYAML("b"))
	must(t, os.Remove(filepath.Join(p.dir, "pipe.yaml")))
	must(t, os.Remove(filepath.Join(p.dir, "link.yaml")))
	p.lookAgain()
	if got := p.last; len(got.Problems) > 0 || len(got.Pods) != 2 {
		t.Errorf("without them: %v, %d pods", got.Problems, len(got.Pods))
	}
}

// A folder in the folder is not read, which a note says; it keeps nothing from being complete.
func TestFoldersInTheFolderHaveANote(t *testing.T) {
	p := at(t, t.TempDir(), nil)
	p.place("a.yaml", podYAML("a"))
	for _, name := range []string{"old", "apps", "..data_1", "lost+found"} {
		must(t, os.Mkdir(filepath.Join(p.dir, name), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(p.dir, "apps", "b.yaml"), []byte(podYAML("b")), 0o644))
	p.lookAgain()
	want := []decode.Problem{{File: p.dir, Warning: true, Note: true, Message: "apps/, old/: not read, as by a kubelet: manifests stand in the folder itself"}}
	if got := p.last; !slices.Equal(got.Problems, want) || !got.Complete || len(got.Pods) != 1 {
		t.Errorf("%v; complete %v, %d pods; want %v", got.Problems, got.Complete, len(got.Pods), want)
	}
	must(t, os.RemoveAll(filepath.Join(p.dir, "apps")))
	must(t, os.Remove(filepath.Join(p.dir, "old")))
	p.lookAgain()
	if len(p.last.Problems) > 0 {
		t.Errorf("without them: %v", p.last.Problems)
	}
}
