package managed

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// Pause is the image of sandboxes. No registry has it.
const Pause = "monopod.local/pause:1"

// pauseArchive returns the image as an OCI archive (OCI image layout, in a tar).
func pauseArchive(arch string) ([]byte, error) {
	program, err := pauseProgram(arch)
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	layer := tarOf(file{"pause", 0o755, program})
	config := asJSON(object{
		"architecture": arch, "os": "linux",
		"config": object{"User": "65535:65535", "Entrypoint": []string{"/pause"}, "WorkingDir": "/"},
		"rootfs": object{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	descriptor := func(kind string, content []byte) object {
		return object{"mediaType": "application/vnd.oci.image." + kind, "digest": digest(content), "size": len(content)}
	}
	manifest := asJSON(object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor("config.v1+json", config), "layers": []object{descriptor("layer.v1.tar", layer)},
	})
	named := descriptor("manifest.v1+json", manifest)
	named["annotations"] = object{"io.containerd.image.name": Pause, "org.opencontainers.image.ref.name": Pause}
	index := asJSON(object{"schemaVersion": 2, "manifests": []object{named}})
	return tarOf(file{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, file{"index.json", 0o644, index},
		blob(layer), blob(config), blob(manifest)), nil
}

// file is a file of a tar archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

func blob(content []byte) file {
	return file{"blobs/sha256/" + strings.TrimPrefix(digest(content), "sha256:"), 0o644, content}
}

// tarOf returns an archive of files. Writes to a Buffer do not fail.
func tarOf(files ...file) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		_ = w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg})
		_, _ = w.Write(f.content)
	}
	_ = w.Close()
	return out.Bytes()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func asJSON(v any) []byte {
	b, _ := json.Marshal(v) // of maps, texts and numbers
	return b
}

// Prepare gives the runtime the image of sandboxes, if it does not have it.
func (r *Runtime) Prepare(ctx context.Context, c *cri.Client) error {
	spec := &rt.ImageSpec{Image: Pause}
	if image, err := c.Image(ctx, spec); err != nil || image != nil {
		return err
	}
	if err := r.importPause(ctx); err != nil {
		return fmt.Errorf("give the runtime the image of sandboxes: %w", err)
	}
	for late := time.Now().Add(cri.DefaultTimeouts().Query); ; sleep(ctx, askEvery) { // CRI learns it from an event
		image, err := c.Image(ctx, spec)
		if err != nil || image != nil {
			return err
		}
		if ctx.Err() != nil || time.Now().After(late) {
			return errors.New("the runtime does not show the image of sandboxes that it was given")
		}
	}
}

// importPause imports the image with containerd's own tool, in the namespace that CRI has.
func (r *Runtime) importPause(ctx context.Context) error {
	archive, err := pauseArchive(runtime.GOARCH)
	if err != nil {
		return err
	}
	ctr, err := exec.LookPath(filepath.Join(filepath.Dir(r.binary), "ctr"))
	if err != nil {
		if ctr, err = exec.LookPath("ctr"); err != nil {
			return errors.New("there is no ctr in PATH, which comes with containerd")
		}
	}
	// It is unpacked when it is used first, for the snapshotter that CRI has.
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, ctr, "--address", r.socket(), "--namespace", "k8s.io", "images", "import", "--no-unpack", "-")
	cmd.Stdin = bytes.NewReader(archive)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr images import: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
