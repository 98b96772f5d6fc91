package packaging

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// built is what a package has in it: its files by their paths on a machine. The program is a
// copy of the one that the script asks for manual pages; what makes a package of files is not run.
func built(t *testing.T) (tree string) {
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
	script := "#!/bin/sh\nexec cp -r \"$WORK/tree\" " + dir + "/tree\n"
	if err := os.Mkdir(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(fake, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	run([]string{"PATH=" + fake + ":" + os.Getenv("PATH"), "VERSION=1.0", "SOURCE_DATE_EPOCH=0", "NFPM=none"}, "packaging/pack", "amd64", "bin/monopod")
	return filepath.Join(dir, "tree")
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

// The package has the manual pages, and the docs with what links them.
func TestThePackageHasThePages(t *testing.T) {
	tree := built(t)
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
}
