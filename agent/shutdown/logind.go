package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"

	"monopod/agent/backoff"
	"monopod/agent/disk"
	"monopod/agent/saidonce"
)

const (
	loginName    = "org.freedesktop.login1"
	loginPath    = "/org/freedesktop/login1"
	loginManager = "org.freedesktop.login1.Manager"

	// DropIn is the file that makes logind wait longer.
	DropIn = "/etc/systemd/logind.conf.d/99-monopod.conf"

	// callWithin bounds each call on the bus, and how long logind may be absent from it.
	callWithin = 10 * time.Second
	// askEvery is the least time between two requests to logind that signals cause.
	askEvery = time.Second
	// firstWithin bounds how long logind may delay the start of the agent.
	firstWithin = 2 * time.Second
	// How often logind is queried whether it waits longer now, from rereadFirst on, which doubles
	// (kubelet: the same).
	rereads, rereadFirst = 5, 100 * time.Millisecond
)

// Inhibitor delays the shutdown of the machine by logind until all pods have stopped. It calls
// logind itself: go-systemd's login1 has no deadline for the two calls that matter here.
type Inhibitor struct {
	Needs   time.Duration   // how long all periods last
	Orders  chan<- bool     // to the sync loop: the machine goes down, or the shutdown is cancelled
	Done    <-chan struct{} // from it: all pods have stopped
	Connect Connect         // to the system bus
	DropIn  string
	Log     *slog.Logger
	Event   func(reason, message string) // about trouble of the node
	Record  *Record

	began  time.Time // of the present shutdown
	lock   *os.File  // nil: it is not held
	down   bool      // as last sent to the sync loop
	logged saidonce.Error
	short  saidonce.Error // why pods may not have all their time
}

// Connect connects to a bus until ctx ends.
type Connect func(ctx context.Context, options ...dbus.ConnOption) (*dbus.Conn, error)

// SystemBus connects to the machine's bus.
func SystemBus(ctx context.Context, options ...dbus.ConnOption) (*dbus.Conn, error) {
	return dbus.ConnectSystemBus(append(options, dbus.WithContext(ctx))...)
}

// AskFirst returns whether a shutdown began before this agent, which must start nothing then: an
// upgrade may restart the agent while the machine waits for others. The sync loop must be told of it
// before it starts, and Run follows what comes of it. Without an answer it is false, and what Run
// hears counts.
func (i *Inhibitor) AskFirst(ctx context.Context) (down bool) {
	ctx, cancel := context.WithTimeout(ctx, firstWithin)
	defer cancel()
	conn, err := i.Connect(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	l := login{conn}
	owner, err := l.owner(ctx)
	if err != nil || owner == "" { // the bus would start it, which takes a while and shuts nothing down
		return false
	}
	down, err = l.isPreparing(ctx)
	if err != nil || !down {
		return false
	}
	i.start()
	return true
}

// start records that the sync loop knows of a shutdown.
func (i *Inhibitor) start() {
	i.down, i.began = true, time.Now()
	i.save(Times{Start: i.began})
}

// Run holds the lock and follows logind until ctx ends. It connects again, with growing waits
// (kubelet: 1 s each), when the bus or logind is gone; the lock that it holds outlives both.
func (i *Inhibitor) Run(ctx context.Context) {
	defer i.release()
	if err := i.Record.load(); err != nil {
		i.Log.Warn("the times of the last shutdown are not known", "err", err)
		i.Event("StateFileDamaged", "times of the last shutdown: "+err.Error())
	}
	failed := 0
	for ctx.Err() == nil {
		began := time.Now()
		err := i.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > backoff.Most {
			failed = 0
		}
		failed++
		if i.logged.IsNew(err) {
			i.Log.Error("shutdown is not delayed by logind; trying again", "err", err)
			i.Event("FailedInhibit", err.Error())
		}
		sleep(ctx, backoff.After(failed))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// session follows logind on one connection. The error is why it ended.
func (i *Inhibitor) session(ctx context.Context) error {
	life, end := context.WithCancel(ctx)
	defer end()
	late := time.AfterFunc(callWithin, end)
	heard := newListener()
	conn, err := i.Connect(life, dbus.WithSignalHandler(heard))
	if err != nil {
		return fmt.Errorf("connect to the system bus: %w", err)
	}
	defer conn.Close()
	late.Stop()
	l := login{conn}
	if err := l.subscribe(ctx, heard); err != nil {
		return err
	}
	if err := i.begin(ctx, l); err != nil {
		return err
	}
	i.logged.IsNew(nil)
	return i.attend(ctx, l, heard)
}

// attend queries logind after each of its signals, until the connection ends. All signals that
// come before the next request is allowed are answered by one request.
func (i *Inhibitor) attend(ctx context.Context, l login, heard *listener) (err error) {
	var asked time.Time
	var due, lost <-chan time.Time // logind is to be queried; is gone for too long
	for err == nil {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.conn.Context().Done():
			return errors.New("the connection to the system bus has ended")
		case <-heard.prepares:
			if due == nil {
				due = time.After(time.Until(asked.Add(askEvery)))
			}
		case <-due:
			due, asked = nil, time.Now()
			err = i.ask(ctx, l)
		case <-heard.moves:
			lost = nil
			if heard.ownerNow() == "" {
				lost = time.After(callWithin)
				continue
			}
			err = i.begin(ctx, l) // another logind may not know the lock
		case <-lost:
			return errors.New("logind is gone from the system bus")
		case <-i.Done:
			i.finish()
		}
	}
	return err
}

// ask follows logind's present state.
func (i *Inhibitor) ask(ctx context.Context, l login) error {
	down, err := l.isPreparing(ctx)
	if err != nil {
		return err
	}
	return i.follow(ctx, l, down)
}

// finish lets the shutdown continue, unless it was cancelled meanwhile.
func (i *Inhibitor) finish() {
	if !i.down {
		return
	}
	i.save(Times{Start: i.began, End: time.Now()})
	i.Log.Info("pods have stopped; the shutdown goes on")
	i.release()
}

// begin updates the sync loop, and takes the lock unless it is too late for that.
func (i *Inhibitor) begin(ctx context.Context, l login) error {
	down, err := l.isPreparing(ctx)
	if err != nil {
		return err
	}
	if down || i.down {
		if err := i.follow(ctx, l, down); err != nil || down {
			return err
		}
	}
	i.allow(ctx, l)
	return i.take(ctx, l)
}

// follow sends logind's state to the sync loop. After a cancelled shutdown it takes the lock
// again.
func (i *Inhibitor) follow(ctx context.Context, l login, down bool) error {
	if down == i.down {
		return nil
	}
	select {
	case i.Orders <- down:
		i.down = down
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if down {
		i.start()
		return nil
	}
	return i.take(ctx, l)
}

// save keeps the times of a shutdown, which continues without that.
func (i *Inhibitor) save(t Times) {
	if err := i.Record.save(t); err != nil {
		i.Log.Warn("the times of the shutdown are not kept", "err", err)
	}
}

// take takes the lock, and releases the one before.
func (i *Inhibitor) take(ctx context.Context, l login) error {
	lock, err := l.inhibit(ctx)
	if err != nil {
		if down, _ := l.isPreparing(ctx); down { // the shutdown began in between
			return i.follow(ctx, l, true)
		}
		return err
	}
	i.release()
	i.lock = lock
	i.Log.Info("shutdown is delayed until pods have stopped", "atMost", i.Needs)
	return nil
}

func (i *Inhibitor) release() {
	if i.lock != nil {
		i.lock.Close()
		i.lock = nil
	}
}

// allow makes logind wait for as long as the pods need. Time that it does not grant is missing
// when pods stop.
func (i *Inhibitor) allow(ctx context.Context, l login) {
	most, err := l.delay(ctx)
	if err == nil && most < i.Needs {
		most, err = i.extend(ctx, l)
	}
	if err == nil && most < i.Needs {
		err = fmt.Errorf("logind waits for %s only, pods have %s: set InhibitDelayMaxSec in logind.conf, or look for a file that sorts after %s", most, i.Needs, i.DropIn)
	}
	if i.short.IsNew(err) {
		i.Log.Error("pods may not have all their time in a shutdown", "err", err)
		i.Event("ShortInhibitDelay", err.Error())
	}
}

// extend writes the drop-in, and returns how long logind waits then.
func (i *Inhibitor) extend(ctx context.Context, l login) (most time.Duration, err error) {
	if err := disk.MkdirAll(filepath.Dir(i.DropIn), 0o755); err != nil {
		return 0, err
	}
	seconds := (i.Needs + time.Second - 1) / time.Second
	text := fmt.Sprintf("# Written by monopod, which stops pods before the machine goes down.\n[Login]\nInhibitDelayMaxSec=%d\n", seconds)
	if err := disk.WriteFile(i.DropIn, []byte(text), 0o644); err != nil {
		return 0, err
	}
	if err := l.reload(ctx); err != nil {
		return 0, err
	}
	for k := range rereads {
		if most, err = l.delay(ctx); err != nil || most >= i.Needs {
			return most, err
		}
		sleep(ctx, rereadFirst<<k)
	}
	return most, nil
}
