package managed

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// readTar returns the files of an archive by name.
func readTar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

type described struct {
	Digest      string
	Size        int
	Annotations map[string]string
}

// Every descriptor of the archive has the digest and the size of a blob that is in it.
func TestTheArchiveIsAnImage(t *testing.T) {
	archive, err := pauseArchive("amd64")
	if err != nil {
		t.Fatal(err)
	}
	files := readTar(t, archive)
	blobOf := func(d described) []byte {
		t.Helper()
		b, found := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if !found || digest(b) != d.Digest || len(b) != d.Size {
			t.Fatalf("no blob of %+v", d)
		}
		return b
	}
	var index struct{ Manifests []described }
	var manifest struct {
		Config described
		Layers []described
	}
	var config struct {
		Architecture, OS string
		Config           struct{ Entrypoint []string }
		Rootfs           struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(blobOf(index.Manifests[0]), &manifest); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(blobOf(manifest.Config), &config); err != nil {
		t.Fatal(err)
	}
	layer := blobOf(manifest.Layers[0])
	if config.Architecture != "amd64" || config.OS != "linux" || config.Rootfs.DiffIDs[0] != digest(layer) || config.Config.Entrypoint[0] != "/pause" {
		t.Errorf("%+v", config)
	}
	if index.Manifests[0].Annotations["io.containerd.image.name"] != Pause {
		t.Errorf("%+v", index)
	}
	program, _ := pauseProgram("amd64")
	if !bytes.Equal(readTar(t, layer)["pause"], program) {
		t.Error("the layer lacks the program")
	}
}

// The same bytes give the same image, of whatever agent.
func TestTheArchiveIsAlwaysTheSame(t *testing.T) {
	one, err1 := pauseArchive("arm64")
	two, err2 := pauseArchive("arm64")
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(one, two) {
		t.Errorf("two archives differ (%v)", err)
	}
}
