package archives

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// made is a file of an archive.
type made struct {
	name    string
	content []byte
}

func digestOf(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func asJSON(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

type object = map[string]any

// parts are the blobs of an image for a machine.
func parts(machine string) (layer, config, manifest []byte) {
	layer = []byte(strings.Repeat("a layer ", 1000))
	config = asJSON(object{"architecture": machine, "os": "linux"})
	manifest = asJSON(object{"config": object{"digest": digestOf(config)}, "layers": []object{{"digest": digestOf(layer)}}})
	return layer, config, manifest
}

func blobOf(b []byte) made { return made{"blobs/" + strings.Replace(digestOf(b), ":", "/", 1), b} }

// ociOf is the files of an OCI archive.
func ociOf(name, machine string) []made {
	layer, config, manifest := parts(machine)
	index := asJSON(object{"manifests": []object{{"digest": digestOf(manifest), "annotations": object{"org.opencontainers.image.ref.name": name}}}})
	return []made{blobOf(layer), blobOf(config), blobOf(manifest), {"index.json", index}, {"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
}

// dockerOf is the files of an archive as docker save writes it.
func dockerOf(name, machine string) []made {
	layer, config, _ := parts(machine)
	file := strings.TrimPrefix(digestOf(config), "sha256:") + ".json"
	return []made{{"l/layer.tar", layer}, {file, config},
		{"manifest.json", asJSON([]object{{"Config": file, "RepoTags": []string{name}, "Layers": []string{"l/layer.tar"}}})}}
}

// idOf is the id of the image that these functions make.
func idOf(machine string) string {
	_, config, _ := parts(machine)
	return digestOf(config)
}

func tarOf(files []made) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		_ = w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content)), Typeflag: tar.TypeReg})
		_, _ = w.Write(f.content)
	}
	_ = w.Close()
	return out.Bytes()
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func zstandard(t *testing.T, b []byte) []byte {
	t.Helper()
	cmd := exec.Command("zstd", "--stdout", "--quiet")
	cmd.Stdin = bytes.NewReader(b)
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no zstd here")
	}
	return out
}

// put writes an archive by rename, and returns its path.
func put(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	part := filepath.Join(dir, ".part")
	if err := os.WriteFile(part, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(part, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func readAll(t *testing.T, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return b
}
