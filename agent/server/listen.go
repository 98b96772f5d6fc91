package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// socketPathMax is what fits into sockaddr_un with its final zero (unix(7)).
	socketPathMax  = 107
	resolveTimeout = 2 * time.Second
	dialTimeout    = time.Second
)

// listenTCP binds an address, one that is not loopback only if clients are authenticated.
func listenTCP(address string, guarded bool, a Access) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: not of the form host:port", address)
	}
	ip, err := resolve(host)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if !ip.IsLoopback() && !guarded {
		return nil, &SettingsError{fmt.Sprintf("listen on %s: others can reach this address: it needs %s and %s, and %s or %s; or use 127.0.0.1",
			address, a.name("tlsCertFile"), a.name("tlsPrivateKeyFile"), a.name("clientCAFile"), a.name("tokenFile"))}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &busyError{fmt.Sprintf("listen on %s: address in use: is another monopod or a kubelet running?", address)}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, &busyError{fmt.Sprintf("listen on %s: %v: the machine does not have this address", address, cause(err))}
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, cause(err))
	}
	return l, nil
}

// busyError is about an address that cannot be bound now, and may be later: another process has
// it, which any user of the machine may start, or no interface has it yet.
type busyError struct{ text string }

func (e *busyError) Error() string { return e.text }

// resolve returns the address of host: one that is not loopback, if there is any. The caller binds
// what this returns and does not resolve again.
func resolve(host string) (netip.Addr, error) {
	if host == "" {
		return netip.IPv6Unspecified(), nil
	}
	if host == "localhost" { // RFC 6761; no resolver is used
		return netip.MustParseAddr("127.0.0.1"), nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap(), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(ips) == 0 {
		return netip.Addr{}, fmt.Errorf("the name %s has no address", host)
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return ip.Unmap(), nil
		}
	}
	return ips[0].Unmap(), nil
}

// listenUnix binds a socket that only its owner can open. It replaces a socket that no process
// answers on, and nothing else.
func listenUnix(path string) (net.Listener, error) {
	if err := clearSocket(path); err != nil {
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
		return nil, fmt.Errorf("listen on %s: %w", path, cause(err))
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return l, nil
}

// clearSocket makes sure that path can be bound.
func clearSocket(path string) error {
	if n := len(path); n > socketPathMax {
		return fmt.Errorf("the path has %d bytes, a socket takes at most %d", n, socketPathMax)
	}
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder %s does not exist", filepath.Dir(path))
		}
		return nil
	}
	if err != nil {
		return cause(err)
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
		return cause(err)
	}
}

// cause returns the system's own words for an error, without the operation and the address, which
// the caller adds.
func cause(err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return err
}
