package cp

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What is copied through a link is called as it was asked for, not as the container calls what the
// link leads to.
func TestAFileCopiedThroughALinkHasTheNameThatWasAskedFor(t *testing.T) {
	tars(t, func(t *testing.T, c *Copy) {
		from, to := t.TempDir(), t.TempDir()
		write(t, from+"/releases/v2", "the program")
		write(t, to+"/v2", "another file of this machine")
		if err := errors.Join(os.Symlink("releases/v2", from+"/newest"), os.Symlink("newest", from+"/current")); err != nil {
			t.Fatal(err)
		}
		if err := c.Down(t.Context(), from+"/current", to); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"current": "the program", "v2": "another file of this machine"} {
			if got, err := os.ReadFile(to + "/" + name); string(got) != want {
				t.Errorf("%s is %q, %v, want %q", name, got, err, want)
			}
		}
	})
}

// What is no file may have several names, too, of which tar tells as of those of a file.
func TestLinksAndPipesOfSeveralNamesDoNotEndACopy(t *testing.T) {
	tars(t, func(t *testing.T, c *Copy) {
		from, to := t.TempDir(), t.TempDir()+"/there"
		write(t, from+"/plain", "plain")
		if err := errors.Join(
			os.Symlink("plain", from+"/inside"), os.Link(from+"/inside", from+"/inside too"),
			os.Symlink("/etc/passwd", from+"/out"), os.Link(from+"/out", from+"/out too"),
			unix.Mkfifo(from+"/pipe", 0o600), os.Link(from+"/pipe", from+"/pipe too"),
		); err != nil {
			t.Fatal(err)
		}
		var notes strings.Builder
		c.Notes = &notes
		if err := c.Down(t.Context(), from, to); err != nil {
			t.Fatalf("%v; notes %q", err, notes.String())
		}
		want := "\"/inside\" 120777 to plain\n\"/inside too\" 120777 to plain\n\"/plain\" 100644 5 bytes 706c61696e"
		if got := listed(t, to); got != want {
			t.Errorf("the copy is\n%s\nwant\n%s", got, want)
		}
		for _, left := range []string{"out", "out too", "pipe", "pipe too"} {
			if !strings.Contains(notes.String(), "left out: "+left+": ") {
				t.Errorf("%s is not told of in %q", left, notes.String())
			}
		}
	})
}
