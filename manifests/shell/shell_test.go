package shell

import (
	"os/exec"
	"testing"
)

func TestHintsCanBeCopiedIntoAShell(t *testing.T) {
	for _, word := range []string{"/tmp/monopod-once-1", "/a b", "/a'b", "/$(echo x)", "/`x`;y|z&", "/~", `/back\slash "q"`, "/ümlaut"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Word(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%s becomes %q, %v", Word(word), out, err)
		}
	}
	if got := Word("/tmp/monopod-once-1"); got != "/tmp/monopod-once-1" {
		t.Errorf("a plain path becomes %s", got)
	}
	if got, want := Word("/a\x1b[31m'\n"), `$'/a\033\13331m\047\012'`; got != want {
		t.Errorf("what a terminal obeys becomes %q, want %q", got, want)
	}
}
