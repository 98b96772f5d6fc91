package rig

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Names of the images that every rig serves. The runtime asks the rig's registry
// for every image, whatever host its name begins with.
const (
	Busybox  = "registry.test/busybox:1"
	Busybox2 = "registry.test/busybox:2" // other content, same programs
	Pause    = "registry.test/pause:1"
)

// Registry is an image registry in this process, in memory, on loopback.
type Registry struct {
	Addr   string // 127.0.0.1:port, plain http
	server *http.Server
}

// NewRegistry serves an empty registry.
func NewRegistry() (*Registry, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve the registry: %w", err)
	}
	quiet := log.New(io.Discard, "", 0)
	r := &Registry{Addr: l.Addr().String(), server: &http.Server{Handler: registry.New(registry.Logger(quiet)), ErrorLog: quiet}}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

// Close ends the registry and forgets its images.
func (r *Registry) Close() error { return r.server.Close() }

// Push stores an image under the repository and tag of ref, leaving out its
// host, and returns its digest (sha256:...).
func (r *Registry) Push(ref string, img v1.Image) (string, error) {
	_, repo, _ := strings.Cut(ref, "/")
	to, err := name.ParseReference(r.Addr+"/"+repo, name.Insecure)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	if err := remote.Write(to, img); err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	d, err := img.Digest()
	return d.String(), err
}

// Copy stores the image that is under from under another reference as well.
func (r *Registry) Copy(from, to string) error {
	_, repo, _ := strings.Cut(from, "/")
	ref, err := name.ParseReference(r.Addr+"/"+repo, name.Insecure)
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	_, err = r.Push(to, img)
	return err
}

// Entry is one file, link or folder of an image.
type Entry struct {
	Path string // without leading slash
	Data []byte // of a file
	Link string // symlink to
	Dir  bool
}

// NewImage builds a one-layer image that runs cmd. The same entries give the
// same digest.
func NewImage(cmd []string, entries ...Entry) (v1.Image, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, d := range []string{"tmp", "etc", "proc", "sys", "dev", "var", "root"} {
		entries = append(entries, Entry{Path: d, Dir: true})
	}
	for _, e := range entries {
		if err := e.write(w); err != nil {
			return nil, fmt.Errorf("image layer: %s: %w", e.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("image layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		return nil, fmt.Errorf("image layer: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return mutate.Config(img, v1.Config{Cmd: cmd, Env: []string{"PATH=/bin:/usr/bin:/sbin"}})
}

func (e Entry) write(w *tar.Writer) error {
	h := &tar.Header{Name: e.Path, Mode: 0o755, Size: int64(len(e.Data)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	switch {
	case e.Dir:
		h.Typeflag = tar.TypeDir
		if e.Path == "tmp" {
			h.Mode = 0o1777
		}
	case e.Link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(e.Data)
	return err
}

// pushImages builds busybox and pause from local files and stores them.
func pushImages(r *Registry, dir string) error {
	if err := pushProgram(r, dir, "pause", Pause); err != nil {
		return err
	}
	for i, ref := range []string{Busybox, Busybox2} {
		img, err := busyboxImage(fmt.Sprintf("%d\n", i+1))
		if err != nil {
			return err
		}
		if _, err := r.Push(ref, img); err != nil {
			return err
		}
	}
	return nil
}

// busyboxImage is busybox with all its links, and the file /etc/version.
func busyboxImage(version string) (v1.Image, error) {
	path, err := staticBusybox()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("busybox image: %w", err)
	}
	applets, err := output(exec.Command(path, "--list"))
	if err != nil {
		return nil, fmt.Errorf("busybox image: %w", err)
	}
	entries := []Entry{{Path: "bin/busybox", Data: data}, {Path: "etc/version", Data: []byte(version)},
		{Path: "etc/passwd", Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
		{Path: "etc/group", Data: []byte("root:x:0:\nnobody:x:65534:\n")}}
	for _, a := range strings.Fields(applets) {
		if a != "busybox" {
			entries = append(entries, Entry{Path: "bin/" + a, Link: "busybox"})
		}
	}
	return NewImage([]string{"sh"}, entries...)
}

// staticBusybox finds a busybox that needs no shared libraries.
func staticBusybox() (string, error) {
	for _, path := range []string{"/bin/busybox", "/usr/bin/busybox"} {
		f, err := elf.Open(path)
		if err != nil {
			continue
		}
		libs, err := f.ImportedLibraries()
		f.Close()
		if err == nil && len(libs) == 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("no static busybox in /bin or /usr/bin: install busybox-static (make deps)")
}

// PushProgram compiles testdata/images/NAME and serves it as the image ref, which
// holds nothing else and runs it as /NAME.
func (r *Rig) PushProgram(name, ref string) error { return pushProgram(r.Registry, r.Dir, name, ref) }

func pushProgram(r *Registry, dir, name, ref string) error {
	bin := filepath.Join(dir, name)
	if built := os.Getenv("MONOPOD_PROGRAMS"); built != "" { // a machine without Go
		bin = filepath.Join(built, name)
	} else if err := goBuild(bin, "./testdata/images/"+name); err != nil {
		return err
	}
	img, err := programImage(bin)
	if err != nil {
		return err
	}
	_, err = r.Push(ref, img)
	return err
}

// programImage is an image of one static program, which it runs.
func programImage(bin string) (v1.Image, error) {
	name := filepath.Base(bin)
	data, err := os.ReadFile(bin)
	if err != nil {
		return nil, fmt.Errorf("image of %s: %w", name, err)
	}
	return NewImage([]string{"/" + name}, Entry{Path: name, Data: data})
}

// SaveImages writes Busybox and Pause, whose program is pause, to an archive that
// `ctr images import` reads.
func SaveImages(path, pause string) error {
	box, err := busyboxImage("1\n")
	if err != nil {
		return err
	}
	holder, err := programImage(pause)
	if err != nil {
		return err
	}
	all := map[name.Tag]v1.Image{}
	for ref, img := range map[string]v1.Image{Busybox: box, Pause: holder} {
		tag, err := name.NewTag(ref)
		if err != nil {
			return fmt.Errorf("save image %s: %w", ref, err)
		}
		if all[tag], err = forThisMachine(img); err != nil {
			return fmt.Errorf("save image %s: %w", ref, err)
		}
	}
	return tarball.MultiWriteToFile(path, all)
}

// SaveImage writes busybox under a name to an archive as docker save does. more is a file in it,
// so that others have another id.
func SaveImage(path, ref, more string) error {
	box, err := busyboxImage(more)
	if err != nil {
		return err
	}
	return saveImage(path, ref, box)
}

func saveImage(path, ref string, img v1.Image) error {
	tag, err := name.NewTag(ref)
	if err == nil {
		img, err = forThisMachine(img)
	}
	if err != nil {
		return fmt.Errorf("save image %s: %w", ref, err)
	}
	return tarball.WriteToFile(path, tag, img)
}

// SaveImageOf is SaveImage of an image that has so many bytes more, which do not compress.
func SaveImageOf(path, ref string, bytes int64) error {
	layer, err := random.Layer(bytes, types.DockerLayer)
	if err != nil {
		return fmt.Errorf("save image %s: %w", ref, err)
	}
	return saveImageWith(path, ref, layer)
}

// SaveImageOfZeros is SaveImage of an image that has a file of so many zero bytes more, for which
// the archive has next to none.
func SaveImageOfZeros(path, ref string, bytes int64) error {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return tarOfZeros(bytes), nil })
	if err != nil {
		return fmt.Errorf("save image %s: %w", ref, err)
	}
	return saveImageWith(path, ref, layer)
}

// tarOfZeros is a tar with one file of so many zero bytes.
func tarOfZeros(size int64) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := t.WriteHeader(&tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Mode: 0o644, Size: size})
		for left, some := size, make([]byte, 1<<20); left > 0 && err == nil; {
			var n int
			n, err = t.Write(some[:min(left, int64(len(some)))])
			left -= int64(n)
		}
		w.CloseWithError(cmp.Or(err, t.Close(), io.EOF))
	}()
	return r
}

func saveImageWith(path, ref string, layer v1.Layer) error {
	box, err := busyboxImage(ref)
	if err != nil {
		return err
	}
	if box, err = mutate.AppendLayers(box, layer); err != nil {
		return fmt.Errorf("save image %s: %w", ref, err)
	}
	return saveImage(path, ref, box)
}

// forThisMachine is the image with its platform, without which an import leaves it out.
func forThisMachine(img v1.Image) (v1.Image, error) {
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = runtime.GOOS, runtime.GOARCH
	return mutate.ConfigFile(img, c)
}
