package managed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestALogIsEmptiedWhileItsWriterAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	writer, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	says := func(want, former string) {
		t.Helper()
		if err := rotateLog(path, 10); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		before, _ := os.ReadFile(path + ".1")
		if string(got) != want || string(before) != former {
			t.Errorf("the log is %q and was %q, want %q and %q", got, before, want, former)
		}
	}
	writer.WriteString("0123456789")
	says("0123456789", "") // no more than it may be
	writer.WriteString("abc")
	says("", "3456789abc")
	writer.WriteString("next")
	says("next", "3456789abc")
	writer.WriteString(strings.Repeat("z", 20))
	says("", "zzzzzzzzzz")
}

func TestALogOfWhichNoCopyCanBeKeptIsEmptied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := rotateLog(path, 10); err != nil {
		t.Errorf("no log: %v", err)
	}
	if err := os.WriteFile(path, []byte("more than ten bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".1", 0o700); err != nil { // no file can be there
		t.Fatal(err)
	}
	err := rotateLog(path, 10)
	left, _ := os.ReadFile(path)
	if err == nil || len(left) != 0 {
		t.Errorf("%v, and %q is left", err, left)
	}
}
