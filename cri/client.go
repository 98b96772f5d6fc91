// Package cri is a typed client for the CRI: sandboxes, containers, images and events of a
// container runtime. It knows no pods and keeps no state beyond one connection. Every call has its
// own deadline, which grows with what calls of its kind need; every error names the call and its
// object, carries the runtime's own words and unwraps to the gRPC status.
package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Timeouts bounds each kind of call, until calls have needed longer. A shorter deadline of the
// caller's context wins.
type Timeouts struct {
	Query  time.Duration // version, status, lists, image status
	Run    time.Duration // RunPodSandbox: CNI plugins may be slow
	Create time.Duration // CreateContainer, StartContainer: snapshots and shims on a loaded disk
	Stop   time.Duration // StopPodSandbox; StopContainer gets the grace on top
	Remove time.Duration // RemovePodSandbox, RemoveContainer
	Pull   time.Duration // PullImage
}

// DefaultTimeouts returns the deadlines that Dial and New start with.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		Query:  10 * time.Second,
		Run:    4 * time.Minute,
		Create: 2 * time.Minute,
		Stop:   2 * time.Minute,
		Remove: 2 * time.Minute,
		Pull:   30 * time.Minute,
	}
}

// Client talks to one runtime. It is safe for concurrent use.
type Client struct {
	// Timeouts may be changed before the first call.
	Timeouts Timeouts
	// Observe may be set before the first call; it may be nil.
	Observe Observer

	runtime rt.RuntimeServiceClient
	images  rt.ImageServiceClient
	closer  io.Closer   // nil: the connection belongs to the caller of New
	dialer  *dialer     // nil: likewise
	isCRIO  atomic.Bool // according to its last answer

	patience patience
}

// New returns a client on a connection that remains the caller's to close.
func New(conn grpc.ClientConnInterface) *Client {
	c := &Client{Timeouts: DefaultTimeouts(), patience: patience{needs: map[string]time.Duration{}}}
	conn = observed{conn, c}
	c.runtime, c.images = rt.NewRuntimeServiceClient(conn), rt.NewImageServiceClient(conn)
	return c
}

// WellKnown returns the sockets of containerd and CRI-O.
func WellKnown() []string {
	return []string{"unix:///run/containerd/containerd.sock", "unix:///run/crio/crio.sock"}
}

// Dial returns a client of the first runtime in endpoints that answers; each is "unix:///path" or
// "/path". It does not connect: the first call does. Without a runtime, calls fail at once (see
// Unavailable), and the client itself tries all endpoints again, at intervals of at most about a
// second. Once one has answered, it is the only one that is tried: another runtime would not know
// what runs in it.
func Dial(endpoints ...string) (*Client, error) {
	d := &dialer{}
	for _, e := range endpoints {
		path, err := socketPath(e)
		if err != nil {
			return nil, err
		}
		d.paths = append(d.paths, path)
	}
	// passthrough with a dialer of our own: the path need not be valid in a URL.
	conn, err := grpc.NewClient("passthrough:///runtime", dialOptions(d)...)
	if err != nil {
		return nil, fmt.Errorf("runtime endpoint %s: %w", strings.Join(endpoints, ", "), err)
	}
	c := New(conn)
	c.closer, c.dialer = conn, d
	return c, nil
}

// Endpoint returns the endpoint of the last connection; before the first, a description of all.
func (c *Client) Endpoint() string {
	if c.dialer == nil {
		return ""
	}
	if path := c.dialer.last.Load(); path != nil {
		return "unix://" + *path
	}
	return "unix://" + strings.Join(c.dialer.paths, " or unix://")
}

// Connections returns how many connections Dial's client has had. Behind another one there may be another
// version of the runtime, or one with other settings, although no call has failed.
func (c *Client) Connections() int64 {
	if c.dialer == nil {
		return 0
	}
	return c.dialer.made.Load()
}

// settle keeps the client with the runtime that has told its version.
func (c *Client) settle() {
	if c.dialer != nil {
		c.dialer.answered.Store(true)
	}
}

// noAnswer is the beginning of the error when no socket accepts a connection.
const noAnswer = "no runtime answers on"

// dialer connects to the first socket that answers.
type dialer struct {
	paths    []string
	last     atomic.Pointer[string] // of the last connection
	answered atomic.Bool            // by the runtime of the last connection
	made     atomic.Int64           // connections
}

// candidates returns the sockets to try.
func (d *dialer) candidates() []string {
	if d.answered.Load() {
		return []string{*d.last.Load()}
	}
	return d.paths
}

func (d *dialer) dial(ctx context.Context, _ string) (net.Conn, error) {
	var failed []string
	for _, path := range d.candidates() {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			d.last.Store(&path)
			d.made.Add(1)
			return conn, nil
		}
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			err = errno // without the call
		}
		failed = append(failed, fmt.Sprintf("%s (%v)", path, err))
	}
	return nil, fmt.Errorf("%s %s: start the container runtime, or give its socket with --runtime-endpoint", noAnswer, strings.Join(failed, ", "))
}

// Close ends the connection if Dial made it; calls in flight fail.
func (c *Client) Close() error {
	if c.closer == nil {
		return nil
	}
	return c.closer.Close()
}

// Reconnect tries the endpoints at once, and waits until one answers or ctx ends. Otherwise the
// client learns within about a second that a runtime has started.
func (c *Client) Reconnect(ctx context.Context) {
	conn, isOwn := c.closer.(*grpc.ClientConn)
	if !isOwn {
		return
	}
	conn.Connect()
	conn.ResetConnectBackoff()
	for s := conn.GetState(); s != connectivity.Ready; s = conn.GetState() {
		if !conn.WaitForStateChange(ctx, s) {
			return
		}
	}
}

// socketPath returns the absolute path of an endpoint.
func socketPath(endpoint string) (string, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if !filepath.IsAbs(path) || strings.HasSuffix(path, "/") {
		return "", fmt.Errorf("runtime endpoint %q: want unix:///path/to/socket or /path/to/socket", endpoint)
	}
	return path, nil
}

// dialOptions keeps buffers and windows small, for a small resident size, and disables what a local
// socket does not need.
func dialOptions(d *dialer) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(d.dial),
		grpc.WithAuthority("localhost"),
		grpc.WithUserAgent("monopod"),
		grpc.WithNoProxy(),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay:  50 * time.Millisecond,
				Multiplier: 1.5,
				Jitter:     0.2,
				MaxDelay:   time.Second,
			},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithReadBufferSize(16 << 10),
		grpc.WithWriteBufferSize(16 << 10),
		grpc.WithStaticStreamWindowSize(64 << 10),
		grpc.WithStaticConnWindowSize(64 << 10),
		// The list of a busy node with thousands of containers exceeds gRPC's 4 MiB.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
	}
}
