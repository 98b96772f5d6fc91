package imagename

import (
	_ "crypto/sha512" // as in the binary, by TLS: the library knows only what is linked
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

// byLibrary is what the library makes of a name, in the terms of this package.
func byLibrary(name string) (repository, canonical, tag, err string) {
	named, wrong := reference.ParseNormalizedNamed(name)
	if wrong != nil {
		return "", "", "", wrong.Error()
	}
	if tagged, is := named.(reference.Tagged); is {
		tag = tagged.Tag()
	}
	full, wrong := reference.ParseDockerRef(name)
	if wrong != nil {
		return named.Name(), "", tag, wrong.Error()
	}
	return named.Name(), full.String(), tag, ""
}

// same reports how the library's reading of a name differs from ours.
func same(t *testing.T, name string) {
	t.Helper()
	repository, canonical, tag, wrong := byLibrary(name)
	n, err := Parse(name)
	switch {
	case err != nil && err.Error() != wrong:
		t.Errorf("%q: %q, the library: %q", name, err, wrong)
	case err == nil && wrong != "":
		t.Errorf("%q is %+v, the library: %q", name, n, wrong)
	case err == nil && (n.Repository() != repository || n.Canonical() != canonical || n.Tag != tag):
		t.Errorf("%q is %q, %q with tag %q; the library: %q, %q, %q", name, n.Repository(), n.Canonical(), n.Tag, repository, canonical, tag)
	}
}

var hexDigits = strings.Repeat("0123456789abcdef", 8)

// names are of each kind, right and wrong.
var names = []string{
	"", "busybox", "busybox:1", "busybox:", "busybox:1:2", "team/app", "a/b/c/d:e", "docker.io/busybox", "index.docker.io/busybox", "index.docker.io/a/b",
	"localhost/x", "localhost:5000/x:y", "registry.example.com/team/app:2", "registry.example.com:5000/app@sha256:" + hexDigits[:64], "x:1@sha256:" + hexDigits[:64],
	"x@sha256:" + hexDigits[:63], "x@sha256:" + hexDigits[:96], "x@sha384:" + hexDigits[:96], "x@sha512:" + hexDigits[:128], "x@md5:" + hexDigits[:32], "x@sha256:" + strings.ToUpper(hexDigits[:64]),
	"x@sha+b64u:" + hexDigits[:64], "x@sha++b:" + hexDigits[:64], "x@+sha:" + hexDigits[:64], "x@sha+:" + hexDigits[:64], "x@sha+9:" + hexDigits[:64], "x@9:" + hexDigits[:64], "x@", "@sha256:" + hexDigits[:64],
	"[::1]:5000/x", "[::1]/x", "[]/x", "[::g]/x", "[::1/x", "Busybox", "team/App", "Team/app", "TEAM/app:X", "docker.io/Team/x", "example.com/Team/x:y", "a_b.c/d", "a_b.c/d:1", "a__b", "a___b", "a..b", "a.b", "a-b", "a--b", "a._b", "-a", "a-", "_a", "a_",
	".a/b", "a./b", "-a.b/c", "a-.b/c", "a.b:/c", "a.b:x/c", "a.b:80/c", "a:80/c", "a//b", "/a", "a/", "a b", "https://a/b", "a/b:-x", "a/b:.x", "a/b:x.-_", "a/b:" + strings.Repeat("x", 128), "a/b:" + strings.Repeat("x", 129),
	hexDigits[:64], hexDigits[:63], strings.ToUpper(hexDigits[:64]), strings.Repeat("a", 255), strings.Repeat("a", 248) + "/b", "docker.io/" + strings.Repeat("a", 255) + "/b", "example.com/" + strings.Repeat("a", 255), "example.com/" + strings.Repeat("a", 256),
	"a\x00", "ä/b", "a/ä", "a:ä", "Ä/b", "a.b/Ä", "a@b@c", "a:1@b:2", "localhost", "a.b", "K.x/y",
}

func TestNamesAreReadAsTheLibraryReadsThem(t *testing.T) {
	for _, name := range names {
		same(t, name)
	}
}

// TestRandomNames makes names of pieces of which each may stand in a name.
func TestRandomNames(t *testing.T) {
	pieces := []string{"a", "b9", "Z", "0", ".", "-", "--", "_", "__", "___", ":", "/", "@", "sha256:" + hexDigits[:64], "sha512:" + hexDigits[:128], "md5:" + hexDigits[:32], "+", "[", "]", "localhost", "docker.io", "index.docker.io", "x.y", ":5000", ":latest", " ", "é"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var name strings.Builder
		for range 1 + r.IntN(9) {
			name.WriteString(pieces[r.IntN(len(pieces))])
		}
		same(t, name.String())
		if t.Failed() {
			return
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range names {
		f.Add(name)
	}
	f.Fuzz(same)
}
