package archives

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// idNow returns the id of the image that a name means in the runtime; "": none.
func (b *box) idNow(t *testing.T, name string) string {
	t.Helper()
	is, err := b.config.CRI.Image(t.Context(), &rt.ImageSpec{Image: name})
	if err != nil {
		t.Fatal(err)
	}
	return is.GetId()
}

// otherOf is the files of an archive with another image of the same name.
func otherOf(name string) []made {
	layer := []byte("another layer")
	config := asJSON(object{"architecture": arch, "os": "linux", "created": "later"})
	manifest := asJSON(object{"config": object{"digest": digestOf(config)}, "layers": []object{{"digest": digestOf(layer)}}})
	index := asJSON(object{"manifests": []object{{"digest": digestOf(manifest), "annotations": object{"org.opencontainers.image.ref.name": name}}}})
	return []made{blobOf(layer), blobOf(config), blobOf(manifest), {"index.json", index}, {"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
}

func TestTheIDOfAnImageDoesNotFollowFromTheNameOfAFile(t *testing.T) {
	layer, config, _ := parts(arch)
	files := []made{{"layer.tar.gz", layer}, {"config.json", config},
		{"manifest.json", asJSON([]object{{"Config": "config.json", "RepoTags": []string{app}, "Layers": []string{"layer.tar.gz"}}})}}
	index, err := ReadIndex(bytes.NewReader(tarOf(files)), arch)
	if err != nil || index.Images[0].ID != idOf(arch) {
		t.Errorf("%+v, %v, want the id %s", index, err, idOf(arch))
	}
}

// tagsThenFails is an importer that moves the tag, as ctr does before it unpacks, and fails, as on a
// full disk.
type tagsThenFails struct{ *box }

func (f tagsThenFails) Import(_ context.Context, from Source) error {
	_, _ = io.Copy(io.Discard, from.Tar)
	f.runtime.MoveTag(from.Index.Images[0].Name)
	return errors.New("no space left on device")
}

func TestAFailedImportTakesNoNameFromTheImageThatWasThere(t *testing.T) {
	failing := func(b *box) {
		b.config.Importer = func(context.Context, *cri.Client) (Importer, error) { return tagsThenFails{b}, nil }
	}
	inBoxWith(t, failing, func(t *testing.T, b *box) {
		b.runtime.AddImage(app)
		first := b.idNow(t, app)
		put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		if now := b.idNow(t, app); now != first {
			t.Errorf("the name means %q, want %s", now, first)
		}
	})
}

func TestOfTwoArchivesWithOneNameTheSameOneWins(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		put(t, b.dir, "a.tar", tarOf(ociOf(app, arch)))
		put(t, b.dir, "b.tar", tarOf(otherOf(app)))
		b.passes()
		first := b.idNow(t, app)
		if err := b.config.CRI.RemoveImage(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		b.rest(2 * recheck)
		if now := b.idNow(t, app); now != first {
			t.Errorf("after the image was removed the name means %s, before %s", now, first)
		}
	})
}

func TestAnArchiveOfTheSameSizeAndTimeIsAnotherOne(t *testing.T) {
	inBox(t, func(t *testing.T, b *box) {
		old := time.Unix(0, 0)
		replace := func(files []made) {
			files = append(files, made{"pad", make([]byte, 1<<16-contentOf(files))})
			path := put(t, b.dir, ".new", tarOf(files))
			if err := errors.Join(os.Chtimes(path, old, old), os.Rename(path, filepath.Join(b.dir, "app.tar"))); err != nil {
				t.Fatal(err)
			}
			b.passes()
		}
		replace(ociOf(app, arch))
		first, info := b.idNow(t, app), stat(t, filepath.Join(b.dir, "app.tar"))
		replace(otherOf(app))
		if now := stat(t, filepath.Join(b.dir, "app.tar")); now.Size() != info.Size() {
			t.Fatalf("the sizes are %d and %d", info.Size(), now.Size())
		}
		if now := b.idNow(t, app); now == first {
			t.Errorf("the runtime has %s, of the archive that was replaced", now)
		}
	})
}

// contentOf returns how much space files take in a tar, without their headers.
func contentOf(files []made) (n int) {
	for _, f := range files {
		n += (len(f.content) + 511) / 512 * 512
	}
	return n
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestTheNamesInAnArchiveAreBounded(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		for k := range 96 {
			_ = out.WriteHeader(&tar.Header{Name: strings.Repeat("x", 1<<19) + string(rune('a'+k%26)) + strings.Repeat("y", k+1), Mode: 0o644, Typeflag: tar.TypeReg})
		}
		_ = w.CloseWithError(out.Close())
	}()
	c := &contents{files: map[string]int64{}, docs: map[string][]byte{}}
	err := c.read(tar.NewReader(r))
	_ = r.Close()
	kept := 0
	for name := range c.files {
		kept += len(name)
	}
	runtime.KeepAlive(c)
	if kept > 2*maxKept {
		t.Errorf("%d MB of names are kept of an archive of 96 empty files, %v", kept>>20, err)
	}
}

func TestAFolderThatIsGoneKeepsItsArchives(t *testing.T) {
	inBoxWith(t, func(b *box) { b.config.Made = "" }, func(t *testing.T, b *box) {
		path := put(t, b.dir, "app.tar", tarOf(ociOf(app, arch)))
		b.passes()
		if err := os.Rename(b.dir, b.dir+".unmounted"); err != nil {
			t.Fatal(err)
		}
		b.passes()
		if b.Given()[app] != path {
			t.Errorf("given %v, %v", b.Given(), b.problems)
		}
	})
}

func TestWhatIsSaidOfAnArchiveHasNoControlCharacters(t *testing.T) {
	const evil = "x\x1b[2J\nmonopod: all is well"
	layer, config, _ := parts(arch)
	for name, files := range map[string][]made{
		"a layer":  {{"c", config}, {"manifest.json", asJSON([]object{{"Config": "c", "RepoTags": []string{app}, "Layers": []string{evil}}})}},
		"a config": {{"l", layer}, {"manifest.json", asJSON([]object{{"Config": evil, "RepoTags": []string{app}, "Layers": []string{"l"}}})}},
	} {
		_, err := ReadIndex(bytes.NewReader(tarOf(files)), arch)
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%s: %q", name, err)
		}
	}
}

func TestAnArchiveThatItsOwnerMayWriteIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it gives files to another user: run it as root")
	}
	for name, give := range map[string]func(dir, path string) error{
		"its owner":          func(_, path string) error { return os.Chown(path, 1000, 1000) },
		"its folder's owner": func(dir, _ string) error { return os.Chown(dir, 1000, 1000) },
		"where its link leads": func(dir, path string) error {
			other := dir + ".open"
			return errors.Join(os.Mkdir(other, 0o700), os.Chmod(other, 0o777), os.Rename(path, filepath.Join(other, "app.tar")), os.Symlink(filepath.Join(other, "app.tar"), path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBoxWith(t, func(b *box) {
				path := put(t, b.dir, "a.tar", tarOf(ociOf(app, arch)))
				if err := give(b.dir, path); err != nil {
					t.Fatal(err)
				}
			}, func(t *testing.T, b *box) {
				b.passes()
				if b.has(app) {
					t.Errorf("it is imported, problems %v", b.problems)
				}
			})
		})
	}
}
