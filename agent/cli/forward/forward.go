// Package forward listens on ports of this machine and passes connections on to ports of a pod.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"monopod/agent/print"
	"monopod/agent/stream"
)

// Options is what Run listens on, and where the connections go.
type Options struct {
	Subject   string // the pod, in words
	Ports     []Port
	Addresses []string // as for CheckAddresses
	Follow    bool     // continue with the pod's next sandbox

	// Find returns the pod's present sandbox. Its error is why it has none.
	Find func(ctx context.Context) (sandbox string, err error)
	// Runs reports whether the sandbox is still the pod's. An error means that it is not known.
	Runs func(ctx context.Context, sandbox string) (bool, error)
	// URL returns the runtime's URL for one connection to a port of the sandbox.
	URL func(ctx context.Context, sandbox string, port uint16) (string, error)

	Out, Err io.Writer

	every time.Duration // between checks of the sandbox; 0: lookEvery
}

const (
	// maxConns is how many connections are passed on at a time. Each takes some hundred
	// kilobytes here and in the runtime.
	maxConns = 256
	// lookEvery is how often the sandbox is checked: a message about it may be that late.
	lookEvery = 2 * time.Second
	// breath is the time between tries to accept a connection when that has failed, for example
	// for lack of file descriptors.
	breath = 100 * time.Millisecond
)

// ErrLost: the pod's sandbox is gone.
var ErrLost = errors.New("lost connection to pod")

// Run passes connections on until ctx ends, which is its error, or the pod is gone.
func Run(ctx context.Context, o Options) error {
	sandbox, err := o.Find(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &forwarding{o: o, lose: func() { cancel(ErrLost) }, sandbox: sandbox}
	listeners, err := f.listen()
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() { f.accept(ctx, l, &serving) })
	}
	serving.Go(func() { f.watch(ctx) })
	<-ctx.Done()
	for _, l := range listeners {
		l.socket.Close()
	}
	serving.Wait()
	return context.Cause(ctx)
}

// forwarding is a running Run.
type forwarding struct {
	o    Options
	lose func()

	looking sync.Mutex // held while the sandbox is checked

	mu      sync.Mutex // guards what follows, and each printed line
	sandbox string     // "": none
	waits   bool       // for a sandbox, which was printed
	open    int
}

// listener is a port with its socket.
type listener struct {
	socket *net.TCPListener
	port   Port
}

// listen listens on all ports. One port in use does not affect the others.
func (f *forwarding) listen() (all []listener, err error) {
	addresses, err := addressesOf(f.o.Addresses)
	if err != nil {
		return nil, err
	}
	for k := range f.o.Ports {
		port := &f.o.Ports[k]
		found, err := f.listenOn(addresses, port)
		if err != nil {
			f.print(f.o.Err, "monopod: unable to listen on port %d: %v", port.Local, err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, errors.New("unable to listen on any of the requested ports")
	}
	return all, nil
}

// listenOn listens on a port of all addresses; a free port is the same on all of them. It prints
// which one another program has, where the others are enough.
func (f *forwarding) listenOn(addresses []address, port *Port) (all []listener, err error) {
	var failed []error
	missing := false
	for _, a := range addresses {
		l, err := net.Listen(a.network, net.JoinHostPort(a.host, strconv.Itoa(int(port.Local))))
		if err != nil {
			failed = append(failed, err)
			missing = missing || !a.optional
			continue
		}
		at := l.Addr().(*net.TCPAddr)
		port.Local = uint16(at.Port)
		all = append(all, listener{l.(*net.TCPListener), *port})
	}
	if missing || len(all) == 0 {
		for _, l := range all {
			l.socket.Close()
		}
		return nil, errors.Join(failed...)
	}
	for _, err := range failed {
		if errors.Is(err, syscall.EADDRINUSE) { // otherwise the machine lacks IPv4 or IPv6
			f.print(f.o.Err, "monopod: unable to listen on port %d: %v", port.Local, err)
		}
	}
	for _, l := range all {
		f.print(f.o.Out, "Forwarding from %s -> %d", l.socket.Addr(), port.Remote)
	}
	return all, nil
}

// accept serves a listener until ctx ends.
func (f *forwarding) accept(ctx context.Context, l listener, serving *sync.WaitGroup) {
	for ctx.Err() == nil {
		conn, err := l.socket.AcceptTCP()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return
		case err != nil:
			f.print(f.o.Err, "monopod: unable to accept a connection on port %d: %v", l.port.Local, err)
			select {
			case <-time.After(breath):
			case <-ctx.Done():
			}
		case !f.count(1):
			conn.SetLinger(0)
			conn.Close()
			f.print(f.o.Err, "monopod: a connection on port %d is refused: %d are open", l.port.Local, maxConns)
		default:
			serving.Go(func() {
				defer f.count(-1)
				f.pass(ctx, l.port, conn)
			})
		}
	}
}

// count counts connections; it returns false if there is no room for one more.
func (f *forwarding) count(more int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if more > 0 && f.open >= maxConns {
		return false
	}
	f.open += more
	return true
}

// pass passes one connection on, and prints errors.
func (f *forwarding) pass(ctx context.Context, port Port, conn *net.TCPConn) {
	f.print(f.o.Out, "Handling connection for %d", port.Local)
	defer func() { // what was passed on is closed already
		conn.SetLinger(0)
		conn.Close()
	}()
	url, err := f.url(ctx, port.Remote)
	if err == nil {
		err = stream.Forward(ctx, url, port.Remote, conn)
	}
	if err != nil && ctx.Err() == nil {
		f.print(f.o.Err, "monopod: an error occurred forwarding %d -> %d: %s", port.Local, port.Remote, print.OneLine(err.Error()))
	}
}

// url requests one connection to the sandbox; if that one is gone, to the next.
func (f *forwarding) url(ctx context.Context, port uint16) (string, error) {
	sandbox := f.now()
	url, err := "", error(nil)
	if sandbox != "" {
		url, err = f.o.URL(ctx, sandbox, port)
	}
	if sandbox != "" && err == nil {
		return url, nil
	}
	f.look(ctx)
	switch next := f.now(); {
	case next == "":
		return "", fmt.Errorf("%s is not there now", f.o.Subject)
	case next == sandbox:
		return "", err
	default:
		return f.o.URL(ctx, next, port)
	}
}

func (f *forwarding) now() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sandbox
}

// watch checks the sandbox from time to time.
func (f *forwarding) watch(ctx context.Context) {
	every := f.o.every
	if every == 0 {
		every = lookEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look checks whether the sandbox is still the pod's, and if not, which one is.
func (f *forwarding) look(ctx context.Context) {
	f.looking.Lock()
	defer f.looking.Unlock()
	former := f.now()
	if former != "" {
		if runs, err := f.o.Runs(ctx, former); runs || err != nil {
			return
		}
	}
	if !f.o.Follow {
		f.lose()
		return
	}
	next, err := f.o.Find(ctx)
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	f.sandbox = next
	printed := f.waits
	f.waits = err != nil
	f.mu.Unlock()
	switch {
	case err == nil && former == "":
		f.print(f.o.Err, "monopod: %s is there again", f.o.Subject)
	case err == nil:
		f.print(f.o.Err, "monopod: %s was replaced: connections go to the new one", f.o.Subject)
	case !printed:
		f.print(f.o.Err, "monopod: %s is gone, and is waited for: %s", f.o.Subject, print.OneLine(err.Error()))
	}
}

// print prints one line.
func (f *forwarding) print(to io.Writer, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(to, format+"\n", args...)
}
