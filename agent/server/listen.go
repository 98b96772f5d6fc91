package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"monopod/agent/saidonce"
)

const resolveTimeout = 2 * time.Second

// listenTCP binds an address, one that is not loopback only if clients are authenticated.
func listenTCP(address string, a Access) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: not of the form host:port", address)
	}
	ip, err := resolve(host)
	if err != nil {
		return nil, &busyError{fmt.Sprintf("listen on %s: %v", address, err)}
	}
	if err := a.checkReach(address, ip); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &busyError{fmt.Sprintf("listen on %s: address in use: is another monopod or a kubelet running?", address)}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, &busyError{fmt.Sprintf("listen on %s: %v: the machine does not have this address", address, saidonce.Cause(err))}
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, saidonce.Cause(err))
	}
	return l, nil
}

// busyError is about an address that cannot be bound now, and may be later: another process has
// it, which any user of the machine may start, or no interface has it yet, or no resolver knows its name.
type busyError struct{ text string }

func (e *busyError) Error() string { return e.text }

// resolve returns the address of host: one that is not loopback, if there is any. The caller binds
// what this returns and does not resolve again.
func resolve(host string) (netip.Addr, error) {
	if ip := literal(host); ip.IsValid() {
		return ip, nil
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

// literal returns the address of a host that needs no resolver to have one; not valid: it needs one.
func literal(host string) netip.Addr {
	switch host {
	case "":
		return netip.IPv6Unspecified()
	case "localhost": // RFC 6761
		return netip.MustParseAddr("127.0.0.1")
	}
	ip, _ := netip.ParseAddr(host)
	return ip.Unmap()
}
