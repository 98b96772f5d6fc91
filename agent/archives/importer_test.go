package archives

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeSkopeo puts a program in PATH that keeps, for each call, its arguments and what it reads of the
// file that its first image names.
func fakeSkopeo(t *testing.T) (calls string) {
	t.Helper()
	bin, calls := t.TempDir(), t.TempDir()
	script := `#!/bin/sh
n=$(ls "` + calls + `" | wc -l)
echo "$@" >"` + calls + `/$n.args"
file=${3#*-archive:}; file=${file%%:*}
[ "$(head -c 4 $file | wc -c)" = 4 ] || exit 1 # it looks at the first bytes, and opens the file again
cat $file >"` + calls + `/$n.tar"
`
	if err := os.WriteFile(filepath.Join(bin, "skopeo"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return calls
}

// Not all versions of skopeo read what is compressed, and none a pipe from its beginning twice.
func TestSkopeoIsGivenAWholeTar(t *testing.T) {
	tar := tarOf(dockerOf("a/b:1", "amd64"))
	index := Index{Format: Docker, Images: []Image{{Name: "docker.io/a/b:1", As: "b"}, {Name: "docker.io/a/c:1", As: "c"}}}
	for name, content := range map[string][]byte{"plain.tar": tar, "small.tar.gz": gzipped(tar), "small.tar.zst": zstandard(t, tar)} {
		calls := fakeSkopeo(t)
		path := put(t, t.TempDir(), name, content)
		r, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		err = skopeo{}.Import(t.Context(), Source{Path: path, Index: index, Tar: r})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
		for n, want := range []string{
			"copy --quiet docker-archive:/dev/stdin:b containers-storage:docker.io/a/b:1\n",
			"copy --quiet docker-archive:/dev/stdin:c containers-storage:docker.io/a/c:1\n",
		} {
			file := filepath.Join(calls, string(rune('0'+2*n)))
			if args, err := os.ReadFile(file + ".args"); err != nil || string(args) != want {
				t.Errorf("%s: skopeo is called with %q, %v, want %q", name, args, err, want)
			}
			if got, err := os.ReadFile(file + ".tar"); err != nil || !bytes.Equal(got, tar) {
				t.Errorf("%s: skopeo reads %d bytes, %v, want the %d of the tar", name, len(got), err, len(tar))
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(unpackIn, "monopod-archive-*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

func TestWithoutSkopeoTheCommandsAreSaid(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	index := Index{Format: OCI, Images: []Image{{Name: "docker.io/a/b:1", As: "b"}}}
	err := skopeo{}.Import(t.Context(), Source{Path: "/my images/a.tar", Index: index, Tar: strings.NewReader("")})
	const want = "it is not in PATH: install it, or import by hand: skopeo copy --quiet 'oci-archive:/my images/a.tar:b' containers-storage:docker.io/a/b:1"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
