package probe

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userAgent is what servers see, and may distinguish probes from users by: the kubelet's, of the
// version that monopod is like.
const userAgent = "kube-probe/1.36"

// Prober carries out probes. Its zero value is ready for use, by any goroutine.
type Prober struct {
	// Dial connects to an address; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Observe is called for each probe of a Set's containers; it may be nil. It
	// must not block, nor call the Set.
	Observe func(t *Target, k Kind, f Finding, took time.Duration)

	once      sync.Once
	transport *http.Transport
}

// dial connects. A closed connection lingers for a second at most, so that
// frequent probes do not use up the node's ports.
func (p *Prober) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.Dial != nil {
		return p.Dial(ctx, network, address)
	}
	d := net.Dialer{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if bad := c.Control(func(fd uintptr) {
			err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 1})
		}); bad != nil {
			return bad
		}
		return err
	}}
	return d.DialContext(ctx, network, address)
}

// tcp succeeds when the address accepts a connection.
func (p *Prober) tcp(ctx context.Context, address string, timeout time.Duration) Outcome {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := p.dial(ctx, "tcp", address)
	if err != nil {
		return Outcome{Failure, err.Error()}
	}
	conn.Close()
	return Outcome{Success, ""}
}

// roundTripper returns the transport of all HTTP probes: a connection for each request, no proxy,
// certificates unchecked.
func (p *Prober) roundTripper() *http.Transport {
	p.once.Do(func() {
		p.transport = &http.Transport{
			DialContext:        p.dial,
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, // the kubelet's rule: pods have their own
			DisableKeepAlives:  true,
			DisableCompression: true,
			ForceAttemptHTTP2:  true,
			ReadBufferSize:     2 << 10,
			WriteBufferSize:    1 << 10,

			MaxResponseHeaderBytes: headerLimit,
		}
	})
	return p.transport
}
