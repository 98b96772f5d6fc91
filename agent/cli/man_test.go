package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// goldenPage compares text with testdata/cli/name; MONOPOD_UPDATE=1 rewrites the file.
func goldenPage(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("..", "..", "testdata", "cli", name)
	if os.Getenv("MONOPOD_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != text {
		t.Errorf("%s (%v) is not what was made; MONOPOD_UPDATE=1 rewrites it:\n%s", path, err, text)
	}
}

func TestManPageOfATable(t *testing.T) {
	nothing := func(context.Context, *Call) error { return nil }
	goldenPage(t, "man.1", manPage([]*command{
		{name: "do", args: "THING ...", usage: `do "things"`, about: "\nThings are done.\n.so they are, and this is a line of a length at which the page's source begins another.\n\nC:\\back ~slash^ isn't `quoted`.",
			run: nothing, flags: func(f *pflag.FlagSet) {
				f.BoolP("loud", "l", false, "shout")
				f.String("in-voice", "low", "speak in a `VOICE`")
				f.String("secret", "", "nobody sees me")
				f.MarkHidden("secret")
			}},
		{name: "shy", usage: "nobody sees me", hidden: true, run: nothing},
	}, "v1.2.3"))
}

// Those who read manual pages find nothing wrong with this one.
func TestManPageIsWellFormed(t *testing.T) {
	page := filepath.Join(t.TempDir(), "monopod.1")
	if err := os.WriteFile(page, []byte(manPage(Commands(), "v1.2.3")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, check := range [][]string{{"mandoc", "-T", "lint", "-W", "style"}, {"groff", "-ww", "-man", "-Tutf8", "-z"}} {
		t.Run(check[0], func(t *testing.T) {
			if _, err := exec.LookPath(check[0]); err != nil {
				t.Skipf("no %s here: the page is not checked with it", check[0])
			}
			out, err := exec.Command(check[0], append(check[1:], page)...).CombinedOutput()
			for line := range strings.Lines(string(out)) {
				if !strings.Contains(line, "missing date") { // without one the page is the same whenever it is made
					t.Errorf("%s (%v)", line, err)
				}
			}
		})
	}
}
