package once

import (
	"os"
	"os/exec"
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

func TestRunDirsHaveNumbersForNames(t *testing.T) {
	for _, name := range []string{"monopod-once-", "monopod-once-1;true", "monopod-once-$(echo x)", "monopod-once-1\n2", "other-1"} {
		dir := leftover(t)
		forged := filepath.Join(filepath.Dir(dir), name)
		if err := os.Rename(dir, forged); err != nil {
			t.Fatal(err)
		}
		if got := Leftovers(); len(got) > 0 {
			t.Errorf("offered for removal: %q", got)
		}
		if _, err := ReadNote(forged); err == nil || !strings.Contains(err.Error(), "is not what `monopod once` left") {
			t.Errorf("%q: %v", name, err)
		}
	}
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

func TestHintsCanBeCopiedIntoAShell(t *testing.T) {
	for _, word := range []string{"/tmp/monopod-once-1", "/a b", "/a'b", "/$(echo x)", "/`x`;y|z&", "/~", `/back\slash "q"`, "/ümlaut"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%s becomes %q, %v", shellWord(word), out, err)
		}
	}
	if got := shellWord("/tmp/monopod-once-1"); got != "/tmp/monopod-once-1" {
		t.Errorf("a plain path becomes %s", got)
	}
	if got, want := shellWord("/a\x1b[31m'\n"), `$'/a\033\13331m\047\012'`; got != want {
		t.Errorf("what a terminal obeys becomes %q, want %q", got, want)
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
