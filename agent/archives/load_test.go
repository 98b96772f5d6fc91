package archives

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"
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

// idle has nothing to read until free is closed. The first read of it calls asked.
type idle struct {
	asked func()
	free  chan struct{}
}

func (i idle) Read([]byte) (int, error) {
	i.asked()
	<-i.free
	return 0, io.EOF
}

// Ctrl-C ends a load also while who writes to standard input has nothing to say.
func TestALoadEndsThoughItsWriterIsIdle(t *testing.T) {
	content := tarOf(ociOf(app, arch))
	for what, half := range map[string][]byte{"plain": content[:4000], "gzip": gzipped(content)[:100], "zstd": zstandard(t, content)[:100]} {
		b := newBox(t, t.TempDir())
		ctx, interrupt := context.WithCancel(t.Context())
		writer := idle{interrupt, make(chan struct{})}
		over := make(chan error, 1)
		go func() {
			_, err := loadFrom(ctx, b.config.CRI, takesNames{b, nil, context.Canceled, func() {}}, io.MultiReader(bytes.NewReader(half), writer))
			over <- err
		}()
		select {
		case err := <-over:
			if err == nil {
				t.Errorf("%s: it is loaded", what)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: it waits for the writer", what)
		}
		close(writer.free)
	}
}
