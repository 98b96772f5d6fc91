package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	commandProtocol = "v4.channel.k8s.io"  // of exec and attach
	forwardProtocol = "portforward.k8s.io" // of port-forward

	protocolHeader = "X-Stream-Protocol-Version"
	upgrade        = "SPDY/3.1"

	connectTimeout = 10 * time.Second // for the connection and the answer to the upgrade
	refusalLimit   = 4 << 10          // of the text of a refusal
)

// connect opens a connection to the server behind the URL that speaks SPDY, and a protocol over
// it. It accepts only loopback addresses: the URL gives access to a container.
func connect(ctx context.Context, address, protocol string) (*upgraded, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the runtime's streaming URL: %w", err)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil && u.Hostname() == "localhost" {
		ip, err = netip.MustParseAddr("127.0.0.1"), nil
	}
	if err != nil || !ip.Unmap().IsLoopback() {
		return nil, fmt.Errorf("the runtime's streaming server is at %s and not on a loopback address: set its address to 127.0.0.1", u.Host)
	}
	if u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the runtime's streaming URL is %s://%s: want http or https and a port", u.Scheme, u.Host)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(ip.String(), u.Port()))
	if err != nil {
		return nil, fmt.Errorf("the runtime's streaming server: %w", err)
	}
	if u.Scheme == "https" {
		// Runtimes use self-signed certificates; on loopback this port is the runtime's.
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	speaks, err := upgradeConn(conn, u, protocol)
	if err != nil || !stop() {
		conn.Close()
		if err == nil || ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("the runtime's streaming server at %s: %w", u.Host, err)
	}
	return speaks, nil
}

// upgradeConn turns an HTTP connection into one of SPDY.
func upgradeConn(conn net.Conn, u *url.URL, protocol string) (*upgraded, error) {
	req := &http.Request{Method: http.MethodPost, URL: u, Host: u.Host, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {upgrade}, protocolHeader: {protocol}, "User-Agent": {"monopod"}}}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, refusalLimit))
		return nil, fmt.Errorf("it answers %s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	if spoken := resp.Header.Get(protocolHeader); !strings.EqualFold(resp.Header.Get("Upgrade"), upgrade) || spoken != protocol {
		return nil, fmt.Errorf("it speaks %s with %q, want %s with %s", resp.Header.Get("Upgrade"), spoken, upgrade, protocol)
	}
	return &upgraded{Conn: conn, r: r}, nil
}

// upgraded is a connection of which some was already read.
type upgraded struct {
	net.Conn
	r    *bufio.Reader
	lost atomic.Bool // no more data arrives: the server, or this side, has closed it
}

func (u *upgraded) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil {
		u.lost.Store(true)
	}
	return n, err
}
