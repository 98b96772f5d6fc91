package archives

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestArchivesAreDecompressedByWhatTheyAre(t *testing.T) {
	tar := tarOf(ociOf(app, "amd64"))
	dir := t.TempDir()
	for name, content := range map[string][]byte{"a.tar": tar, "b.tar.gz": gzipped(tar), "c.tar.zst": zstandard(t, tar)} {
		path := put(t, dir, name, content)
		r, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(readAll(t, r), tar) {
			t.Errorf("%s: other content", name)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r, err = Decompress(t.Context(), io.NopCloser(bytes.NewReader(content)))
		if err != nil || !bytes.Equal(readAll(t, r), tar) {
			t.Errorf("%s as a stream: %v", name, err)
		}
		_ = r.Close()
	}
}

// A program gets the file itself, so that nothing of it passes the agent.
func TestAnArchiveThatIsNotCompressedIsItsFile(t *testing.T) {
	r, err := Open(t.Context(), put(t, t.TempDir(), "a.tar", tarOf(ociOf(app, "amd64"))))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, is := r.(*os.File); !is {
		t.Errorf("it is a %T", r)
	}
}

func TestATruncatedCompressedArchiveIsToBeCopiedAgain(t *testing.T) {
	tar := tarOf(ociOf(app, "amd64"))
	for name, content := range map[string][]byte{"a.tar.gz": gzipped(tar), "a.tar.zst": zstandard(t, tar)} {
		_, err := readFile(t.Context(), put(t, t.TempDir(), name, content[:len(content)*2/3]))
		if err == nil || !strings.Contains(err.Error(), "copy it again") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithoutZstdAnArchiveSaysWhatToInstall(t *testing.T) {
	path := put(t, t.TempDir(), "a.tar.zst", zstandard(t, tarOf(ociOf(app, "amd64"))))
	t.Setenv("PATH", t.TempDir())
	_, err := Open(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "no program zstd in PATH: install it") {
		t.Errorf("%v", err)
	}
}

// A compressed archive may be cut anywhere, and may be damaged on its way.
func TestWhatIsWrongWithACompressedArchiveIsSaidWithARemedy(t *testing.T) {
	whole := gzipped(tarOf(ociOf(app, "amd64")))
	damaged := bytes.Clone(whole)
	for k := len(damaged) / 2; k < len(damaged)/2+16; k++ {
		damaged[k] ^= 0xff
	}
	noise := slices.Concat(gzipMagic, []byte("neither this nor that"))
	for what, test := range map[string]struct {
		content []byte
		says    string
	}{
		"its first bytes": {whole[:4], "it ends too early: copy it again"},
		"half of it":      {whole[:len(whole)/2], "it ends too early: copy it again"},
		"a damaged one":   {damaged, "it is damaged: copy it again"},
		"noise":           {noise, "it is damaged: copy it again"},
	} {
		_, err := readFile(t.Context(), put(t, t.TempDir(), "a.tar.gz", test.content))
		if err == nil || err.Error() != test.says {
			t.Errorf("%s: %v, want %s", what, err, test.says)
		}
	}
}
