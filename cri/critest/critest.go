// Package critest is a container runtime for tests: the CRI's RuntimeService and
// ImageService in memory, behind a real unix socket or in process, with faults
// that a test can order. It behaves, and words its errors, as containerd does.
//
//	r := critest.Start(t)                        // behind a socket: r.Endpoint()
//	r.Program("job", critest.Exits(1))
//	r.Fault(critest.On("CreateContainer").Nth(2).Fail(codes.Unknown, "disk full"))
//	...
//	r.Wait(t, func(r *critest.Runtime) bool { return len(r.Running()) == 2 })
//
// In a testing/synctest bubble use New and Conn: a goroutine that waits for a
// socket keeps a bubble's clock from moving.
package critest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Runtime is one fake runtime and the world its containers live in. All methods
// are safe for concurrent use, from hooks too.
type Runtime struct {
	t        testing.TB
	socket   string        // "": in process only
	releases chan struct{} // closed at the end of the test: pending calls return

	mu      sync.Mutex // guards all below
	changed chan struct{}
	down    chan struct{} // closed while the runtime is down
	server  *grpc.Server
	served  chan struct{} // closed when server has ended

	serial     int
	sandboxes  map[string]*sandbox
	containers map[string]*container
	names      map[string]string // reserved name to id
	starts     map[string]int    // "ns/pod/container" to the number of its starts
	doubles    []string

	programs map[string][]Program
	takes    map[string]time.Duration
	exec     ExecFunc

	images      map[string]*rt.Image // by normalized reference
	pulls       map[string]pull
	republished map[string]bool // references that mean another image at the next pull

	name, version, imageDir, sandboxImage string

	conditions   map[string]*rt.RuntimeCondition
	cgroupDriver rt.CgroupDriver
	containerd16 bool
	podEvents    bool   // see SetCRIO
	ociRuntime   string // likewise
	lacks        map[Feature]bool

	faults      []*Fault
	calls       []*Call
	counts      map[string]int // of calls, by method
	open        map[string]int // of calls that have not ended, by method
	countOnly   bool
	subscribers map[*subscriber]bool
	loseEvents  int
}

// New returns a runtime that is reached through Conn only. In a synctest bubble,
// call it inside. It is stopped when the test ends.
func New(t testing.TB) *Runtime {
	r := &Runtime{
		t:           t,
		releases:    make(chan struct{}),
		changed:     make(chan struct{}),
		down:        make(chan struct{}),
		sandboxes:   map[string]*sandbox{},
		containers:  map[string]*container{},
		names:       map[string]string{},
		counts:      map[string]int{},
		open:        map[string]int{},
		starts:      map[string]int{},
		programs:    map[string][]Program{},
		takes:       map[string]time.Duration{},
		images:      map[string]*rt.Image{},
		pulls:       map[string]pull{},
		republished: map[string]bool{},
		name:        "critest",
		version:     "2.0.0",
		imageDir:    "/var/lib/critest",
		subscribers: map[*subscriber]bool{},
		lacks:       map[Feature]bool{},
		conditions: map[string]*rt.RuntimeCondition{
			rt.RuntimeReady: {Type: rt.RuntimeReady, Status: true},
			rt.NetworkReady: {Type: rt.NetworkReady, Status: true},
		},
		cgroupDriver: rt.CgroupDriver_CGROUPFS,
	}
	t.Cleanup(r.close)
	return r
}

// Start returns a runtime that listens on a unix socket (and is reached through
// Conn as well). It is stopped when the test ends.
func Start(t testing.TB) *Runtime {
	t.Helper()
	// Not t.TempDir: a test's long name would not fit into a socket's address.
	dir, err := os.MkdirTemp("/tmp", "critest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := New(t)
	r.socket = filepath.Join(dir, "cri.sock")
	r.listen()
	return r
}

// Endpoint returns "unix:///path" of the socket.
func (r *Runtime) Endpoint() string { return "unix://" + r.socket }

// Stop takes the runtime down: connections are cut and calls fail with
// Unavailable. Its state stays, and containers live on or exit meanwhile.
func (r *Runtime) Stop() {
	r.mu.Lock()
	if r.isDown() {
		r.mu.Unlock()
		return
	}
	close(r.down)
	server, served := r.server, r.served
	r.server = nil
	r.change()
	r.mu.Unlock()
	if server != nil {
		server.Stop()
		<-served
	}
}

// Resume takes a stopped runtime up again.
func (r *Runtime) Resume() {
	r.mu.Lock()
	if !r.isDown() {
		r.mu.Unlock()
		return
	}
	r.down = make(chan struct{})
	r.change()
	r.mu.Unlock()
	if r.socket != "" {
		r.listen()
	}
}

// Restart is Stop and Resume.
func (r *Runtime) Restart() {
	r.Stop()
	r.Resume()
}

// LikeContainerd16 makes the runtime lack what containerd 1.6 lacks: container
// events and RuntimeConfig are Unimplemented, and to stop a missing sandbox or
// container is NotFound.
func (r *Runtime) LikeContainerd16() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containerd16, r.version = true, "1.6.0"
}

// LikeCRIO names the runtime cri-o. As one whose enable_pod_events is false, it ends the
// streams of container events at once without an error; it leaves the algorithm away
// from the ids of images.
func (r *Runtime) LikeCRIO() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.name = "cri-o"
	for _, image := range r.images {
		image.Id = r.imageID(image.Id)
	}
}

// SetCRIO sets what a runtime LikeCRIO reports of itself: its version, whether it streams container
// events, although it does not, and the path of its OCI runtime.
func (r *Runtime) SetCRIO(version string, podEvents bool, ociRuntime string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version, r.podEvents, r.ociRuntime = version, podEvents, ociRuntime
}

// imageID is the id of the image with a digest. r.mu is held.
func (r *Runtime) imageID(digest string) string {
	if r.name == "cri-o" {
		return strings.TrimPrefix(digest, "sha256:")
	}
	return digest
}

// Takes makes a method work that long from now on, its name reserved or its
// container marked as starting or removing meanwhile. It matters for
// RunPodSandbox, CreateContainer, StartContainer and RemoveContainer; other
// methods can be delayed by a Fault.
func (r *Runtime) Takes(method string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes[method] = d
}

func (r *Runtime) listen() {
	listener, err := net.Listen("unix", r.socket)
	if err != nil {
		r.t.Errorf("critest: %v", err)
		return
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(r.unary), grpc.StreamInterceptor(r.stream))
	rt.RegisterRuntimeServiceServer(server, &runtimeService{r: r})
	rt.RegisterImageServiceServer(server, &imageService{r: r})
	served := make(chan struct{})
	r.mu.Lock()
	r.server, r.served = server, served
	r.mu.Unlock()
	go func() {
		defer close(served)
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			r.t.Errorf("critest: serve %s: %v", r.socket, err)
		}
	}()
}

func (r *Runtime) close() {
	r.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		c.disarm()
	}
	close(r.releases)
}

// isDown: r.mu is held.
func (r *Runtime) isDown() bool {
	select {
	case <-r.down:
		return true
	default:
		return false
	}
}

// change wakes all that wait for the runtime to change. r.mu is held.
func (r *Runtime) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// newID returns an id as containerd's: 64 hex digits. r.mu is held.
func (r *Runtime) newID(name string) string {
	r.serial++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, r.serial))
	return hex.EncodeToString(sum[:])
}

// work takes the time that the method takes. r.mu is not held.
func (r *Runtime) work(ctx context.Context, method string) error {
	r.mu.Lock()
	d := r.takes[method]
	r.mu.Unlock()
	return pause(ctx, d)
}

// pause waits for d or the end of ctx, whose error it returns as a gRPC status.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func unknown(format string, args ...any) error { return status.Errorf(codes.Unknown, format, args...) }

func notFound(format string, args ...any) error {
	return status.Errorf(codes.NotFound, format+": not found", args...)
}
