// Package cp copies files between this machine and a container by the container's tar.
package cp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"monopod/agent/print"
	"monopod/agent/runtimewords"
	"monopod/agent/stream"
)

// Copy is one copy between a container and this machine.
type Copy struct {
	// Exec runs a command in the container and returns its exit code. Its error may be a
	// *stream.StartError.
	Exec    func(ctx context.Context, command []string, s stream.Streams) (code int, err error)
	Subject string // the container, in words
	Pod     string // as a person may write it
	// NoPreserve lets the container's tar decide who owns the files there.
	NoPreserve bool
	Notes      io.Writer // for what is left out
}

const (
	// Limits of one copy, as for an artifact of `monopod once`: a container can make more than any
	// machine holds.
	maxCopied      = 1_000_000 // files and folders
	maxCopiedBytes = 16 << 30  // of content; without holes if they need not be sent

	maxPath     = 4096     // of a path in the archive, in bytes, as PATH_MAX
	maxLinks    = 8        // that lead to what is copied
	stderrMost  = 16 << 10 // of tar's error messages, in bytes
	versionMost = 4 << 10
)

// tooMuch returns the error of a copy over its limits.
func (c *Copy) tooMuch(what string) error {
	return fmt.Errorf("there is more than %s, the most that is copied: name a part of it, or let tar do it alone, "+
		"as in `monopod exec %s -- tar cf - PATH | tar xf -`", what, c.Pod)
}

// knowsHoles checks for the container's tar, and whether it is GNU's, which can tell where files
// have holes.
func (c *Copy) knowsHoles(ctx context.Context) (bool, error) {
	out, said := &clipped{most: versionMost}, &clipped{most: versionMost}
	code, err := c.Exec(ctx, []string{"tar", "--version"}, stream.Streams{Out: out, Err: said})
	if notThere(code, err, said.text) {
		return false, fmt.Errorf("%s has no tar, by which files are copied: `monopod exec %s -- cat PATH` reads one, `monopod exec -i %s -- tee PATH` writes one",
			c.Subject, c.Pod, c.Pod)
	}
	return code == 0 && bytes.Contains(out.text, []byte("GNU tar")), err
}

// notThere reports that a command is not in the container. CRI-O does not fail then: the
// OCI runtime says so as if it were the command, and ends with 255.
func notThere(code int, err error, said []byte) bool {
	if start := (*stream.StartError)(nil); errors.As(err, &start) {
		return start.Code == 127
	}
	return err == nil && code != 0 && runtimewords.Of(runtimewords.Create, string(said)) == runtimewords.NotFound
}

// Down copies a file or folder of the container to this machine: a folder's content into the
// folder to, a file to that name, or into to if that is a folder.
func (c *Copy) Down(ctx context.Context, from, to string) error {
	holes, err := c.knowsHoles(ctx)
	if err != nil {
		return err
	}
	_, name := split(from)
	for range maxLinks {
		dir, base := split(from)
		target, err := c.fetch(ctx, holes, &unpacking{copy: c, dir: dir, base: base, name: name, to: to})
		if err != nil || target == "" {
			return err
		}
		from = target // in the container: tar there has to find it
		if !path.IsAbs(target) {
			from = dir + "/" + target
		}
	}
	return fmt.Errorf("%s: too many links lead from it to others", from)
}

// fetch is Down of what tar finds in a folder. If that is a link, it returns its target.
func (c *Copy) fetch(ctx context.Context, holes bool, u *unpacking) (target string, err error) {
	command, name := []string{"tar", "-cf", "-", "-C", u.dir}, "./"+u.base
	if holes { // GNU's takes a backslash in a name for the beginning of another byte
		command = []string{"tar", "--no-unquote", "-Scf", "-", "-C", u.dir}
	}
	if u.base == "." {
		name = "."
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, w := io.Pipe()
	stderr := &clipped{most: stderrMost}
	var code int
	var failed error
	over := make(chan struct{})
	go func() {
		defer close(over)
		code, failed = c.Exec(ctx, append(command, name), stream.Streams{Out: w, Err: stderr})
		w.CloseWithError(failed)
	}()
	u.ctx = ctx
	target, err = u.unpack(r)
	u.close()
	if err != nil {
		err = &cleanError{err}
		cancel(err) // tar need not continue, and may write nothing by which it would notice
	}
	r.CloseWithError(err)
	<-over
	var spoilt *archiveError
	switch {
	case err != nil && !errors.As(err, &spoilt):
	case failed != nil && (err == nil || !errors.Is(failed, err)):
		err = failed
	case code != 0:
		err = c.ended(code, stderr)
	}
	c.leftOut(u.left)
	return target, err
}

// Up copies a file or folder of this machine to the container: to the name to, or into to if
// that is a folder there.
func (c *Copy) Up(ctx context.Context, from, to string) error {
	holes, err := c.knowsHoles(ctx)
	if err != nil {
		return err
	}
	dir, base := split(to)
	if base == "." || c.isFolder(ctx, to) {
		full, err := filepath.Abs(from)
		if err != nil {
			return err
		}
		dir, base = to, filepath.Base(full)
	}
	command := []string{"tar", "-xmf", "-", "-C", dir}
	if c.NoPreserve {
		command = []string{"tar", "--no-same-permissions", "--no-same-owner", "-xmf", "-", "-C", dir}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, w := io.Pipe()
	p := newPacking(ctx, c, w, holes)
	var failed error
	over := make(chan struct{})
	go func() {
		defer close(over)
		failed = p.pack(from, "./"+strings.TrimPrefix(base, "/"))
		w.CloseWithError(failed)
		if failed != nil {
			cancel(failed)
		}
	}()
	stderr := &clipped{most: stderrMost}
	code, err := c.Exec(ctx, command, stream.Streams{In: r, Out: io.Discard, Err: stderr})
	r.CloseWithError(errEnded)
	<-over
	switch {
	case failed != nil && !errors.Is(failed, errEnded):
		err = failed
	case err == nil && code != 0:
		err = c.ended(code, stderr)
	case err == nil && failed != nil:
		err = fmt.Errorf("tar in %s ended before all was copied", c.Subject)
	}
	c.leftOut(p.left)
	return err
}

// errEnded is the error of packing an archive for a tar that has ended.
var errEnded = errors.New("tar has ended")

// isFolder checks in the container. It is false for one without a program for that.
func (c *Copy) isFolder(ctx context.Context, file string) bool {
	code, err := c.Exec(ctx, []string{"test", "-d", file}, stream.Streams{Out: io.Discard, Err: io.Discard})
	return err == nil && code == 0
}

// ended returns the error of tar in the container, with its own messages.
func (c *Copy) ended(code int, stderr *clipped) error {
	lines := strings.Split(strings.TrimSpace(string(stderr.text)), "\n")
	return fmt.Errorf("tar in %s ended with exit code %d: %s", c.Subject, code, print.OneLine(strings.Join(lines, "; ")))
}

// leftOut prints what was not copied.
func (c *Copy) leftOut(l leftOut) {
	for _, text := range l.texts {
		fmt.Fprintln(c.Notes, "monopod: left out: "+print.OneLine(text))
	}
	if more := l.count - len(l.texts); more > 0 {
		fmt.Fprintf(c.Notes, "monopod: left out: %d more\n", more)
	}
}

// leftOut is what is not copied: the number, and the first of it.
type leftOut struct {
	texts []string
	count int
}

const maxNamed = 20

func (l *leftOut) add(format string, args ...any) {
	l.count++
	if len(l.texts) < maxNamed {
		l.texts = append(l.texts, fmt.Sprintf(format, args...))
	}
}

// clipped keeps the first bytes of what is written.
type clipped struct {
	text []byte
	most int
}

func (c *clipped) Write(b []byte) (int, error) {
	c.text = append(c.text, b[:min(len(b), c.most-len(c.text))]...)
	return len(b), nil
}

// cleanError is an error that may contain names from the container.
type cleanError struct{ err error }

func (e *cleanError) Error() string { return print.OneLine(e.err.Error()) }
func (e *cleanError) Unwrap() error { return e.err }

// isThere reports whether a path of this machine, through links, is a folder, and exists.
func isThere(file string) (folder, there bool, err error) {
	i, err := os.Stat(file)
	switch {
	case err == nil:
		return i.IsDir(), true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, false, nil
	}
	return false, false, err
}
