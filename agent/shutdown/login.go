package shutdown

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// login is logind on a connection. Each call has a deadline.
type login struct{ conn *dbus.Conn }

// subscribe asks for the signal of a shutdown.
func (l login) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	err := l.conn.AddMatchSignalContext(ctx, dbus.WithMatchInterface(loginManager), dbus.WithMatchMember("PrepareForShutdown"), dbus.WithMatchObjectPath(loginPath))
	if err != nil {
		return fmt.Errorf("follow logind: %w", err)
	}
	return nil
}

// startsOrStops reports whether a signal says that the machine goes down, or does not.
func startsOrStops(s *dbus.Signal) (down, ok bool) {
	if s == nil || s.Name != loginManager+".PrepareForShutdown" || len(s.Body) == 0 {
		return false, false
	}
	down, ok = s.Body[0].(bool)
	return down, ok
}

func (l login) isPreparing(ctx context.Context) (down bool, err error) {
	err = l.property(ctx, "PreparingForShutdown", &down)
	return down, err
}

// delay returns for how long logind waits for locks at most.
func (l login) delay(ctx context.Context) (time.Duration, error) {
	var most uint64
	err := l.property(ctx, "InhibitDelayMaxUSec", &most)
	return time.Duration(most) * time.Microsecond, err
}

func (l login) property(ctx context.Context, name string, to any) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	var v dbus.Variant
	call := l.conn.Object(loginName, loginPath).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, loginManager, name)
	err := call.Store(&v)
	if err == nil {
		err = v.Store(to)
	}
	if err != nil {
		return fmt.Errorf("ask logind for %s: %w", name, err)
	}
	return nil
}

// inhibit takes a lock that delays shutdowns until it is closed.
func (l login) inhibit(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	var fd dbus.UnixFD
	call := l.conn.Object(loginName, loginPath).CallWithContext(ctx, loginManager+".Inhibit", 0,
		"shutdown", "monopod", "pods stop in order", "delay")
	if err := call.Store(&fd); err != nil {
		return nil, fmt.Errorf("take the lock of logind: %w", err)
	}
	syscall.CloseOnExec(int(fd))
	return os.NewFile(uintptr(fd), "inhibitor lock"), nil
}

// reload has logind read its settings again.
func (l login) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	systemd := l.conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	call := systemd.CallWithContext(ctx, "org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", int32(syscall.SIGHUP))
	if call.Err != nil {
		return fmt.Errorf("reload logind: %w", call.Err)
	}
	return nil
}
