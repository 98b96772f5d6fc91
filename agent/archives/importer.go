package archives

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/manifests/shell"
)

// within bounds an import; a pull has as long.
const within = 30 * time.Minute

// Source is an archive to import.
type Source struct {
	Path  string // "": it is only read
	Index Index  // of one that has a path
	Tar   io.Reader
}

// Importer gives the runtime the images of an archive. Cancelling ends its program.
type Importer interface {
	Import(ctx context.Context, from Source) error
	// Tag gives an image of the runtime another name, which may be that of another one.
	Tag(ctx context.Context, id, name string) error
}

// For returns the importer of a runtime: the program that comes with it.
func For(ctx context.Context, c *cri.Client) (Importer, error) {
	v, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	if v.RuntimeName == "cri-o" {
		return skopeo{}, nil
	}
	if v.RuntimeName != "containerd" {
		return nil, fmt.Errorf("archives are imported by containerd and CRI-O, and the runtime is %s: import them with its own tool", v.RuntimeName)
	}
	fs, err := c.ImageFS(ctx)
	if err != nil {
		return nil, err
	}
	socket := strings.TrimPrefix(c.Endpoint(), "unix://")
	return &ctr{socket: socket, snapshotter: snapshotterIn(fs)}, nil
}

// snapshotterIn returns which snapshotter CRI unpacks images for, by the folder that it reports;
// "": containerd's default.
func snapshotterIn(fs *rt.FilesystemUsage) string {
	_, name, _ := strings.Cut(filepath.Base(fs.GetFsId().GetMountpoint()), "io.containerd.snapshotter.v1.")
	return name
}

// ctr imports into a containerd, in the namespace of CRI.
type ctr struct{ socket, snapshotter string }

var errNoCtr = errors.New("there is no ctr beside containerd or in PATH, which comes with it: install the package of containerd whole")

// Import implements Importer.
func (c *ctr) Import(ctx context.Context, from Source) error {
	program, err := c.program()
	if err != nil {
		return err
	}
	args := []string{"--address", c.socket, "--namespace", "k8s.io", "images", "import"}
	if c.snapshotter != "" {
		args = append(args, "--snapshotter", c.snapshotter)
	}
	return run(ctx, from.Tar, program, append(args, "-")...)
}

// Tag implements Importer.
func (c *ctr) Tag(ctx context.Context, id, name string) error {
	program, err := c.program()
	if err != nil {
		return err
	}
	return run(ctx, nil, program, "--address", c.socket, "--namespace", "k8s.io", "images", "tag", "--force", id, name)
}

// program returns the ctr beside the containerd that has the socket, else that in PATH.
func (c *ctr) program() (string, error) {
	if dir, err := dirOfServer(c.socket); err == nil {
		beside, err := exec.LookPath(filepath.Join(dir, "ctr"))
		if err == nil {
			return beside, nil
		}
	}
	program, err := exec.LookPath("ctr")
	if err != nil {
		return "", errNoCtr
	}
	return program, nil
}

// dirOfServer returns the folder of the program that listens on a unix socket.
func dirOfServer(socket string) (string, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return "", err
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, failed); err != nil {
		return "", err
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", peer.Pid))
	return filepath.Dir(exe), err
}

// skopeo imports into the storage of CRI-O.
type skopeo struct{}

// Import implements Importer.
func (skopeo) Import(ctx context.Context, from Source) error {
	if from.Path == "" {
		return errors.New("CRI-O takes images from files, and not from standard input: save them to one")
	}
	program, err := exec.LookPath("skopeo")
	if err != nil {
		var by []string
		for _, i := range from.Index.Images {
			var words strings.Builder
			for _, arg := range copyArgs(from.Index.Format, from.Path, i) {
				words.WriteString(" " + shell.Word(arg))
			}
			by = append(by, "skopeo"+words.String())
		}
		return fmt.Errorf("CRI-O imports archives with skopeo, and it is not in PATH: install it, or import by hand: %s", strings.Join(by, "; "))
	}
	tar, isFile := from.Tar.(*os.File)
	if !isFile {
		if tar, err = unpacked(ctx, from.Tar); err != nil {
			return err
		}
		defer tar.Close()
	}
	for _, i := range from.Index.Images {
		err := run(ctx, tar, program, copyArgs(from.Index.Format, "/dev/stdin", i)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// copyArgs returns the arguments with which skopeo imports an image of the archive at path.
func copyArgs(format Format, path string, i Image) []string {
	return []string{"copy", "--quiet", fmt.Sprintf("%s-archive:%s:%s", format, path, i.As), "containers-storage:" + i.Name}
}

// unpackIn is where compressed archives are unpacked for skopeo, which does the same.
const unpackIn = "/var/tmp"

// unpacked returns a file with a tar that is read from r, which goes when it is closed. Not all
// versions of skopeo can read what is compressed (1.9.3: "invalid tar header" of gzip).
func unpacked(ctx context.Context, r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp(unpackIn, "monopod-archive-")
	if err != nil {
		return nil, fmt.Errorf("unpack the archive for skopeo: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = io.Copy(f, cancelled{ctx, r})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("unpack the archive for skopeo in %s: %w", unpackIn, err), f.Close())
	}
	return f, nil
}

// cancelled is a reader that ends with ctx.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c cancelled) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// Tag implements Importer.
func (skopeo) Tag(ctx context.Context, id, name string) error {
	program, err := exec.LookPath("skopeo")
	if err != nil {
		return err
	}
	return run(ctx, nil, program, "copy", "--quiet", "containers-storage:@"+strings.TrimPrefix(id, "sha256:"), "containers-storage:"+name)
}

// run runs a program to its end. Its error has what the program says.
func run(ctx context.Context, in io.Reader, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	said := &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, said, said
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() == context.DeadlineExceeded:
		return fmt.Errorf("%s did not end within %s", filepath.Base(program), within)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(said.String(), syscall.ENOSPC.Error()):
		return fmt.Errorf("the disk of the images is full: make room on it, then it is imported: %s", said)
	}
	return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, said)
}

// maxSaid bounds what is kept of a program's words, in bytes.
const maxSaid = 1 << 10

// tail keeps the end of what is written.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-maxSaid):]
	return len(p), nil
}

// String returns the last line.
func (t *tail) String() string {
	lines := bytes.Split(bytes.TrimSpace(t.kept), []byte("\n"))
	return string(bytes.TrimPrefix(lines[len(lines)-1], []byte("ctr: ")))
}
