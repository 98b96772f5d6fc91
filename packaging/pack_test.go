package packaging

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// built is what the packages have in them: below the name of each kind its files by their paths on a
// machine. The program is a copy of the one that the script asks for manual pages; what makes a
// package of files is not run.
func built(t *testing.T) (trees string) {
	t.Helper()
	dir := t.TempDir()
	run := func(env []string, name string, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Env = dir, append(os.Environ(), env...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
	for _, part := range []string{"packaging", "docs", "README.md", "SECURITY.md"} {
		run(nil, "cp", "-r", absolute(t, filepath.Join("..", part)), ".")
	}
	run(nil, "go", "build", "-C", absolute(t, ".."), "-buildvcs=false", "-o", filepath.Join(dir, "bin", "monopod"), ".")
	fake := filepath.Join(dir, "fake")
	script := "#!/bin/sh\nexec cp -r \"$WORK/tree\" " + dir + "/trees/$7\n" // go run NFPM package -f FILE -p KIND
	if err := errors.Join(os.Mkdir(fake, 0o755), os.Mkdir(filepath.Join(dir, "trees"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(fake, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	run([]string{"PATH=" + fake + ":" + os.Getenv("PATH"), "VERSION=1.0", "SOURCE_DATE_EPOCH=0", "NFPM=none"}, "packaging/pack", "amd64", "bin/monopod")
	return filepath.Join(dir, "trees")
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// unpacked returns the text of a file, which may be compressed.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return ""
	}
	if !strings.HasSuffix(path, ".gz") {
		return string(data)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The package has the manual pages, the docs with what links them, and the completions.
func TestThePackageHasThePages(t *testing.T) {
	trees := built(t)
	tree := filepath.Join(trees, "deb")
	for file, begin := range map[string]string{
		"man1/monopod.1.gz":             ".nh\n.TH \"MONOPOD\" \"1\"",
		"man5/monopod.yaml.5.gz":        ".nh\n.TH \"MONOPOD.YAML\" \"5\"",
		"man7/monopod-annotations.7.gz": ".nh\n.TH \"MONOPOD\\-ANNOTATIONS\" \"7\"",
	} {
		if text := unpacked(t, filepath.Join(tree, "usr/share/man", file)); !strings.HasPrefix(text, begin) {
			t.Errorf("%s begins with %.60q", file, text)
		}
	}
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil || len(docs) < 9 {
		t.Fatalf("the docs are %v (%v)", docs, err)
	}
	for _, page := range append(docs, "../README.md", "../SECURITY.md") {
		rel := strings.TrimPrefix(page, "../")
		if unpacked(t, filepath.Join(tree, "usr/share/doc/monopod", rel)) != unpacked(t, page) {
			t.Errorf("the package has another %s", rel)
		}
	}
	hasCompletions(t, trees)
}

// hasCompletions checks that each kind of package has the completions where its distributions' shells look.
func hasCompletions(t *testing.T, trees string) {
	t.Helper()
	for kind, zsh := range map[string]string{"deb": "vendor-completions", "rpm": "site-functions"} {
		for _, file := range []string{"bash-completion/completions/monopod", "zsh/" + zsh + "/_monopod", "fish/vendor_completions.d/monopod.fish"} {
			if text := unpacked(t, filepath.Join(trees, kind, "usr/share", file)); !strings.Contains(text, "completion for monopod") {
				t.Errorf("%s: %s has %.60q", kind, file, text)
			}
		}
		if all, err := filepath.Glob(filepath.Join(trees, kind, "usr/share/zsh/*/_monopod")); err != nil || len(all) != 1 {
			t.Errorf("%s: zsh finds %v (%v)", kind, all, err)
		}
	}
}
