package packaging

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// unpack writes the files of a tar into a folder.
func unpack(t *testing.T, path string) (dir string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir = t.TempDir()
	for files := tar.NewReader(f); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			err = os.WriteFile(to, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The image is one that any tool takes, of the program for each kind of machine.
func TestTheImageHasTheProgramOfEachMachine(t *testing.T) {
	dir := t.TempDir()
	for _, at := range []string{"packaging", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, at), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile("image")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"packaging/image": string(script), "bin/monopod-amd64": "of amd64", "bin/monopod-arm64": "of arm64"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "packaging", "image"))
	c.Env = append(os.Environ(), "VERSION=1.0~git2", "SOURCE_DATE_EPOCH=1000000000", "ARCHES=amd64 arm64")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	index, err := layout.ImageIndexFromPath(unpack(t, filepath.Join(dir, "bin", "monopod_1.0~git2_oci.tar")))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.0-git2" {
		t.Fatalf("the index is %+v (%v)", top, err)
	}
	inner, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	all, err := inner.IndexManifest()
	if err != nil || len(all.Manifests) != 2 {
		t.Fatalf("the images are %+v (%v)", all, err)
	}
	for _, m := range all.Manifests {
		image, err := inner.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != m.Platform.Architecture || config.Config.Entrypoint[0] != "/usr/bin/monopod" {
			t.Errorf("%s has the configuration %+v (%v)", m.Platform, config, err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("the layers are %v (%v)", layers, err)
		}
		layer, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if text := program(t, layer); text != "of "+m.Platform.Architecture {
			t.Errorf("%s has the program %q", m.Platform, text)
		}
	}
}

// program returns the text of the program in a layer.
func program(t *testing.T, layer io.Reader) string {
	t.Helper()
	for files := tar.NewReader(layer); ; {
		h, err := files.Next()
		if err != nil {
			t.Fatalf("the layer has no program: %v", err)
		}
		if h.Name == "./usr/bin/monopod" {
			text, err := io.ReadAll(files)
			if err != nil || h.Mode != 0o755 {
				t.Errorf("the program has mode %o (%v)", h.Mode, err)
			}
			return string(text)
		}
	}
}
