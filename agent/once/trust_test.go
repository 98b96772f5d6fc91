package once

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// leftover makes what a run that was killed left, in a folder for temporary
// files of its own.
func leftover(t *testing.T) string {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := MakeRoot("")
	if err == nil {
		err = Note{Endpoint: "unix:///r"}.Write(dir)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "lock"), []byte("742\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Who may write to a folder for temporary files may put anything there.
func TestRunDirsOfOthersAreLeftAlone(t *testing.T) {
	for _, row := range []struct {
		name  string
		forge func(dir string) error
		says  string // what --remove says of it
		ours  bool   // so it is offered for removal all the same
	}{
		{"the lock is a pipe", func(dir string) error { return instead(dir, "lock", mkfifo) }, "lock: it is not a regular file", false},
		{"the lock is a link", func(dir string) error { return instead(dir, "lock", linkTo("/etc/passwd")) }, "lock: it is a link", false},
		{"the lock is a folder", func(dir string) error { return instead(dir, "lock", mkdir) }, "lock: it is not a regular file", false},
		{"the note is a pipe", func(dir string) error { return instead(dir, noteName, mkfifo) }, "once.json: it is not a regular file", false},
		{"the note is a link", func(dir string) error { return instead(dir, noteName, linkTo("lock")) }, "once.json: it is a link", false},
		{"the note is huge", func(dir string) error { return os.Truncate(filepath.Join(dir, noteName), 1<<40) }, "it is larger than", true},
		{"all may write", func(dir string) error { return os.Chmod(dir, 0o777) }, "others may write to it", false},
		{"a group may write", func(dir string) error { return os.Chmod(dir, 0o770) }, "others may write to it", false},
		{"the folder is a link", func(dir string) error { return away(dir, linkTo(dir+".away")) }, "a link, or no folder", false},
		{"it is a file", func(dir string) error { return away(dir, mkfifo) }, "a link, or no folder", false},
		{"its folder is everybody's", func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "every user may replace files in ", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := leftover(t)
			if err := row.forge(dir); err != nil {
				t.Fatal(err)
			}
			if got := Leftovers(); len(got) > 0 && !row.ours {
				t.Errorf("it is offered for removal: %v", got)
			}
			if _, err := ReadNote(dir); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("--remove says %v, want %s", err, row.says)
			}
		})
	}
}

func TestRunDirsOfAnotherUserAreLeftAlone(t *testing.T) {
	dir := leftover(t)
	if f, err := openRun(dir, os.Geteuid()); err != nil {
		t.Fatal(err)
	} else {
		f.Close()
	}
	if _, err := openRun(dir, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "it belongs to user") {
		t.Errorf("error %v", err)
	}
}

// Names are printed as part of a command, and those of the search may be anyone's.
func TestTheSearchForRunsGoesByTheirNames(t *testing.T) {
	for _, name := range []string{"monopod-once-", "monopod-once-1;true", "monopod-once-$(echo x)", "monopod-once-1\n2", "other-1"} {
		dir := leftover(t)
		forged := filepath.Join(filepath.Dir(dir), name)
		if err := os.Rename(dir, forged); err != nil {
			t.Fatal(err)
		}
		if got := Leftovers(); len(got) > 0 {
			t.Errorf("offered for removal: %q", got)
		}
	}
}

// What a person names is known by its owner, its mode and its note, not by its name.
func TestARunAtAFolderOfAnyNameCanBeRemoved(t *testing.T) {
	for _, name := range []string{"ci-run", "monopod-once-x", "a b"} {
		dir, err := MakeRoot(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadNote(dir); err == nil || !strings.Contains(err.Error(), "there is no once.json in it") {
			t.Errorf("%q before a run: %v", name, err)
		}
		note := Note{Endpoint: "unix:///r"}
		if err := note.Write(dir); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadNote(dir); err != nil || got != note {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
}

// The next run at the same folder is where one that was killed is noticed.
func TestARunIsToldWhatItsFolderHas(t *testing.T) {
	for _, row := range []struct {
		name string
		put  func(dir string) error
		says string
	}{
		{"a killed run", func(string) error { return nil }, "was killed, or kept its pods: `monopod once --remove DIR` removes what is left of it"},
		{"a run that begins", func(dir string) error { return os.Truncate(filepath.Join(dir, lockName), 0) }, "goes on, or was killed as it began: name another folder"},
		{"one that was killed before it held the folder", func(dir string) error { return os.Remove(filepath.Join(dir, lockName)) }, "`monopod once --remove DIR` removes it"},
		{"something else", func(dir string) error { return os.Remove(filepath.Join(dir, noteName)) }, "is not empty: name a folder that is, or one that does not exist"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ci-run")
			if err := os.Rename(leftover(t), dir); err != nil {
				t.Fatal(err)
			}
			if err := row.put(dir); err != nil {
				t.Fatal(err)
			}
			_, err := MakeRoot(dir)
			if err == nil {
				t.Fatal("it is taken")
			}
			text := strings.ReplaceAll(err.Error(), dir, "DIR")
			if !strings.Contains(text, row.says) {
				t.Errorf("said %s", text)
			}
			if _, known := ReadNote(dir); (known == nil) != strings.Contains(text, "--remove") {
				t.Errorf("said %s, and --remove says %v", text, known)
			}
		})
	}
}

// Whoever has the folder, or may write to it, can put anything in the place of what is in it.
func TestAFolderThatOthersRuleIsNotTakenForARun(t *testing.T) {
	for _, row := range []struct {
		name string
		put  func(dir string) error
		says string
	}{
		{"it is another user's", func(dir string) error { return os.Chown(dir, 1234, 1234) }, "it belongs to user 1234"},
		{"a group may write to it", func(dir string) error { return os.Chmod(dir, 0o770) }, "others may write to it (mode 0770)"},
		{"it is a link to another folder", func(dir string) error { return away(dir, linkTo(dir+".away")) }, "it is a link, or no folder"},
		{"it is a file", func(dir string) error { return away(dir, mkfifo) }, "it is a link, or no folder"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Fatal("this test gives a folder to another user: run it as root")
			}
			dir := filepath.Join(t.TempDir(), "ci-run")
			if err := errors.Join(os.Mkdir(dir, 0o700), row.put(dir)); err != nil {
				t.Fatal(err)
			}
			before := modes(dir)
			_, err := MakeRoot(dir)
			if err == nil || !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), "name another with --dir") {
				t.Errorf("said %v", err)
			}
			if after := modes(dir); after != before {
				t.Errorf("the modes were %s, and are %s", before, after)
			}
		})
	}
}

// modes are those of a folder and of what was moved away, as far as they are there.
func modes(dir string) string {
	var out []string
	for _, name := range []string{dir, dir + ".away"} {
		if i, err := os.Lstat(name); err == nil {
			out = append(out, i.Mode().String())
		}
	}
	return strings.Join(out, " ")
}

func TestARunThatBeginsIsNoLeftover(t *testing.T) {
	dir := leftover(t)
	if err := os.Truncate(filepath.Join(dir, "lock"), 0); err != nil { // made, and not locked yet
		t.Fatal(err)
	}
	if got := Leftovers(); len(got) > 0 {
		t.Errorf("offered for removal: %v", got)
	}
}

func TestLeftoversAreFoundInAnyFolder(t *testing.T) {
	dir := leftover(t)
	odd := filepath.Join(t.TempDir(), "a [b *")
	if err := os.Rename(filepath.Dir(dir), odd); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", odd)
	if got, want := Leftovers(), []string{filepath.Join(odd, filepath.Base(dir))}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

func TestNoRunWhereOthersCanReplaceItsFolder(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	for _, row := range []struct {
		mode os.FileMode
		fine bool
	}{{0o777, false}, {0o777 | os.ModeSticky, true}, {0o755, true}} {
		if err := os.Chmod(tmp, row.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := MakeRoot(""); (err == nil) != row.fine {
			t.Errorf("%v: error %v", row.mode, err)
		}
	}
}

// instead puts something in the place of a file.
func instead(dir, name string, make func(string) error) error {
	path := filepath.Join(dir, name)
	if err := os.Remove(path); err != nil {
		return err
	}
	return make(path)
}

// away moves a folder away and puts something in its place.
func away(dir string, make func(string) error) error {
	if err := os.Rename(dir, dir+".away"); err != nil {
		return err
	}
	return make(dir)
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }
func mkdir(path string) error  { return os.Mkdir(path, 0o700) }

func linkTo(target string) func(string) error {
	return func(path string) error { return os.Symlink(target, path) }
}

// A run that ends removes its dir, and then lets go of the lock: another one may have opened that just before.
func TestALockThatItsRunRemovedIsNotLeft(t *testing.T) {
	for _, removed := range []bool{false, true} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, lockName), []byte("4711\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := openRun(dir, os.Geteuid())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		lock, size, err := d.open(lockName)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if removed {
			err = os.Remove(filepath.Join(dir, lockName))
		}
		if free := isFree(lock, size); err != nil || free == removed {
			t.Errorf("removed %t (%v): free %t", removed, err, free)
		}
	}
}
