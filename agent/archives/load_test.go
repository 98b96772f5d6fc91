package archives

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
)

// takesNames is an importer that gives the runtime other images under these names, as ctr does before
// it finds that it cannot unpack one.
type takesNames struct {
	*box
	names []string
	err   error
	do    func()
}

func (f takesNames) Import(_ context.Context, from Source) error {
	_, _ = io.Copy(io.Discard, from.Tar)
	for _, name := range f.names {
		f.runtime.ImportImage(name, "sha256:of the archive")
	}
	f.do()
	return f.err
}

// What comes by standard input is known only when it was read.
func TestOfWhatCannotRunHereNothingStaysFromStandardInput(t *testing.T) {
	const other = "docker.io/library/other:1"
	own, foreign := dockerOf(app, arch), dockerOf(other, "mips")
	both := made{"manifest.json", slices.Concat(bytes.TrimSuffix(own[2].content, []byte("]")), []byte(","), foreign[2].content[1:])}
	for what, archive := range map[string][]made{
		"of another machine, docker": dockerOf(app, "mips"),
		"of another machine, oci":    ociOf(app, "mips"),
		"the second is":              {own[0], own[1], foreign[1], both},
	} {
		for _, fails := range []error{nil, errors.New("ctr: no match for platform")} {
			synctest.Test(t, func(t *testing.T) {
				b := newBox(t, t.TempDir())
				b.runtime.AddImage(app)
				first := b.idNow(t, app)
				names := []string{app}
				if what == "the second is" {
					names = append(names, other)
				}
				_, err := loadFrom(t.Context(), b.config.CRI, takesNames{b, names, fails, func() {}}, bytes.NewReader(tarOf(archive)))
				if err == nil {
					t.Errorf("%s: it is loaded", what)
				}
				if now := b.idNow(t, app); now != first {
					t.Errorf("%s: the name means %q, want %s", what, now, first)
				}
				if b.has(other) {
					t.Errorf("%s: %s stays", what, other)
				}
			})
		}
	}
}

// Ctrl-C ends the program that imports, and the names that it took go back.
func TestAnImportThatIsInterruptedTakesNoName(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "app.tar", tarOf(ociOf(app, arch)))
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, dir)
		b.runtime.AddImage(app)
		first := b.idNow(t, app)
		ctx, interrupt := context.WithCancel(t.Context())
		index := Index{Format: OCI, Images: []Image{{Name: app, ID: idOf(arch), As: app}}}
		err := importFile(ctx, b.config.CRI, takesNames{b, []string{app}, context.Canceled, interrupt}, path, index)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if now := b.idNow(t, app); now != first {
			t.Errorf("the name means %q, want %s", now, first)
		}
	})
}
