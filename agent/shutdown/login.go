package shutdown

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// login is logind on a connection. Each call has a deadline.
type login struct{ conn *dbus.Conn }

// subscribe requests from the bus the signals of a shutdown and of changes of logind's name, and
// records in h who owns that name.
func (l login) subscribe(ctx context.Context, h *listener) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	err := l.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(busName), dbus.WithMatchInterface(busName), dbus.WithMatchMember(ownerChanged), dbus.WithMatchArg(0, loginName))
	if err == nil {
		err = l.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(loginName), dbus.WithMatchInterface(loginManager), dbus.WithMatchMember(prepare), dbus.WithMatchObjectPath(loginPath))
	}
	owner := ""
	if err == nil {
		owner, err = l.owner(ctx)
	}
	if err != nil {
		return fmt.Errorf("follow logind: %w", err)
	}
	h.ownedBy(owner)
	return nil
}

// owner returns the unique name of the connection that owns logind's name, "" if none does: the
// bus starts logind when it is called.
func (l login) owner(ctx context.Context) (name string, err error) {
	err = l.conn.BusObject().CallWithContext(ctx, busName+".GetNameOwner", 0, loginName).Store(&name)
	var e dbus.Error
	if errors.As(err, &e) && e.Name == busName+".Error.NameHasNoOwner" {
		return "", nil
	}
	return name, err
}

func (l login) isPreparing(ctx context.Context) (down bool, err error) {
	err = l.property(ctx, "PreparingForShutdown", &down)
	return down, err
}

// delay returns how long logind waits for locks at most. InhibitDelayMaxSec=infinity is more
// microseconds than a Duration has.
func (l login) delay(ctx context.Context) (time.Duration, error) {
	var most uint64
	err := l.property(ctx, "InhibitDelayMaxUSec", &most)
	const longest = time.Duration(math.MaxInt64) / time.Microsecond
	return time.Duration(min(most, uint64(longest))) * time.Microsecond, err
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

// reload makes logind read its settings again.
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
