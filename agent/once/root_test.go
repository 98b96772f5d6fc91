package once

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

func TestLeftovers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var dirs []string
	for range 3 {
		dir, err := MakeRoot("")
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	note := Note{Endpoint: "unix:///r", NodeName: "n", CgroupDriver: "auto", CgroupRoot: "/x"}
	var held *os.File
	for _, dir := range dirs[:2] { // the third begins just now
		f, err := os.Create(filepath.Join(dir, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString("742\n"); err != nil {
			t.Fatal(err)
		}
		if err := note.Write(dir); err != nil {
			t.Fatal(err)
		}
		held = f
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if got := Leftovers(); !slices.Equal(got, dirs[:1]) {
		t.Errorf("left %v, want %v", got, dirs[:1])
	}
	if got, err := ReadNote(dirs[0]); err != nil || got != note {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ReadNote(dirs[2]); err == nil || !strings.Contains(err.Error(), "is not what `monopod once` left") {
		t.Errorf("a folder of something else: %v", err)
	}
}

// Where temporary files are, everybody may leave something.
func TestWhatOthersLeaveIsNoLeftover(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	plant := func(name string) string {
		dir := filepath.Join(os.TempDir(), rootPrefix+name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	theirs, pipes := plant("theirs"), plant("pipes")
	for _, err := range []error{
		Note{}.Write(theirs), os.WriteFile(filepath.Join(theirs, "lock"), nil, 0o600), os.Chown(theirs, 1234, 1234),
		unix.Mkfifo(filepath.Join(pipes, noteName), 0o600), unix.Mkfifo(filepath.Join(pipes, "lock"), 0o600),
		os.Symlink(theirs, filepath.Join(os.TempDir(), rootPrefix+"link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := Leftovers(); len(got) != 0 {
		t.Errorf("left %v", got)
	}
	if _, err := ReadNote(pipes); err == nil {
		t.Error("a note was read from a pipe")
	}
}

func TestPodsGetUIDsOfTheirOwn(t *testing.T) {
	a, b := made("a", "Never", "c"), made("a", "Never", "c")
	for _, p := range []*v1.Pod{a, b} {
		p.Annotations = map[string]string{annotationHash: "old"}
	}
	Fresh([]*v1.Pod{a, b})
	if len(a.UID) != 32 || a.UID == b.UID || a.Annotations[annotationHash] != string(a.UID) {
		t.Errorf("%s %s %v", a.UID, b.UID, a.Annotations)
	}
}

// Both runs have found the folder empty. The one that does not get it must leave it alone.
func TestOfTwoRunsOneGetsTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for range 2 {
		if _, err := MakeRoot(dir); err != nil {
			t.Fatal(err)
		}
	}
	first := Note{Endpoint: "unix:///first"}
	if err := first.Claim(dir); err != nil {
		t.Fatal(err)
	}
	if err := (Note{Endpoint: "unix:///second"}).Claim(dir); err == nil || !strings.Contains(err.Error(), "another run starts in "+dir) {
		t.Errorf("the second run: %v", err)
	}
	if got, err := ReadNote(dir); err != nil || got != first {
		t.Errorf("the note of the first run is %+v, %v", got, err)
	}
	if err := os.Truncate(filepath.Join(dir, noteName), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadNote(dir); err != nil { // killed before it was written
		t.Error(err)
	}
}
