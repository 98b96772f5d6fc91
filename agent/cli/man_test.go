package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Those who read manual pages find nothing wrong with these.
func TestManPagesAreWellFormed(t *testing.T) {
	for _, args := range [][]string{{"man"}, {"man", "settings"}, {"man", "annotations"}} {
		page := filepath.Join(t.TempDir(), "page")
		out, err := os.Create(page)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if err := execute(t.Context(), nil, out, io.Discard, args...); err != nil {
			t.Fatal(err)
		}
		for _, check := range [][]string{{"mandoc", "-T", "lint", "-W", "warning"}, {"groff", "-ww", "-man", "-Tutf8", "-z"}} {
			t.Run(strings.Join(args, " ")+" with "+check[0], func(t *testing.T) {
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
}
