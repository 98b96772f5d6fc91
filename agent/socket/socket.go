// Package socket binds unix sockets that only their owner can open.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"monopod/agent/saidonce"
)

const (
	// pathMax is what fits into sockaddr_un with its final zero (unix(7)).
	pathMax     = 107
	dialTimeout = time.Second
)

// Socket is a bound socket. Closing it leaves its file: Remove removes that.
type Socket struct {
	net.Listener
	path string
	file os.FileInfo // to know it again
}

// Listen binds a socket. It replaces one that no process answers on, and nothing else. Its errors
// are one sentence for the person who chose the path.
func Listen(path string) (*Socket, error) {
	if err := clearPath(path); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// The mode is set before bind gives the socket a name (Linux takes it from
	// there), so that there is no moment in which others could connect.
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); e != nil {
			return e
		}
		return err
	}}
	l, err := private.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, saidonce.Cause(err))
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	s := &Socket{Listener: l, path: path}
	s.file, err = os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, err
	}
	return s, nil
}

// Remove removes the file of the socket unless another has taken its place.
func (s *Socket) Remove() {
	now, err := os.Lstat(s.path)
	if err == nil && os.SameFile(now, s.file) {
		os.Remove(s.path)
	}
}

// clearPath makes sure that path can be bound.
func clearPath(path string) error {
	if n := len(path); n > pathMax {
		return fmt.Errorf("the path has %d bytes, a socket takes at most %d", n, pathMax)
	}
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder %s does not exist", filepath.Dir(path))
		}
		return nil
	}
	if err != nil {
		return saidonce.Cause(err)
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return errors.New("it exists and is not a socket")
	}
	c, err := net.DialTimeout("unix", path, dialTimeout)
	switch {
	case err == nil:
		c.Close()
		return errors.New("something answers there already: is another monopod running?")
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return saidonce.Cause(err)
	}
}
