package cgroups

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// busWait bounds a call to systemd, including the start or stop of a slice.
const busWait = 30 * time.Second

// Versions of systemd that introduced properties.
const (
	hasQuotaPeriod = 242
	hasAllowedCPUs = 244
)

// bus calls systemd on its D-Bus, which creates a slice for the last part of each cgroup path. It
// connects when needed.
type bus struct {
	wait time.Duration // timeout of a call
	dial func(context.Context) (*dbus.Conn, error)
	turn chan struct{} // one slot: the goroutine that fills it may use what follows

	conn    *dbus.Conn
	version int
	end     context.CancelFunc // of the connection
}

func newBus() *bus {
	return &bus{wait: busWait, dial: dialSystemd, turn: make(chan struct{}, 1), end: func() {}}
}

// call calls systemd. After a timeout, the next call connects again.
func (b *bus) call(ctx context.Context, do func(ctx context.Context, conn *dbus.Conn, version int) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.wait, fmt.Errorf("no answer from systemd within %s", b.wait))
	defer cancel()
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := b.connect(ctx)
	conn, version, end := b.conn, b.version, b.end
	<-b.turn
	if err == nil {
		err = do(ctx, conn, version)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		end()
	}
	return err
}

// connect connects if there is no connection. The caller must have the turn.
func (b *bus) connect(ctx context.Context) error {
	if b.conn != nil && b.conn.Connected() {
		return nil
	}
	// The connection ends with the context that it was created with.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	b.conn, b.end = nil, end
	conn, err := b.dial(life)
	if err != nil {
		end()
		return fmt.Errorf("systemd does not answer: %w", err)
	}
	text, err := conn.GetManagerProperty("Version")
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		return fmt.Errorf("version of systemd: %w", err)
	}
	b.conn, b.version = conn, systemdVersion(text)
	return nil
}

// dialSystemd connects to systemd itself: on the system bus any user may send what looks like the
// end of a job. It uses the bus where systemd's own socket is missing, as in a container with only
// the bus.
func dialSystemd(ctx context.Context) (*dbus.Conn, error) {
	conn, err := dbus.NewSystemdConnectionContext(ctx)
	if err == nil {
		return conn, nil
	}
	return dbus.NewSystemConnectionContext(ctx)
}

// systemdVersion returns the number in a version such as "252.39-1~deb12u1" or "v245".
func systemdVersion(text string) int {
	text = strings.TrimLeft(text, `"v`)
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		text = text[:end]
	}
	n, _ := strconv.Atoi(text)
	return n
}

// start creates and starts a slice. An existing one is not an error.
func (b *bus) start(ctx context.Context, path string) error {
	unit := filepath.Base(path)
	p := []dbus.Property{dbus.PropDescription("pods: " + unit), property("DefaultDependencies", false)}
	if above := filepath.Base(filepath.Dir(path)); strings.HasSuffix(above, ".slice") {
		p = append(p, dbus.PropWants(above))
	}
	for _, name := range []string{"MemoryAccounting", "CPUAccounting", "IOAccounting", "TasksAccounting"} {
		p = append(p, property(name, true))
	}
	return b.call(ctx, func(ctx context.Context, conn *dbus.Conn, _ int) error {
		done := make(chan string, 1)
		_, err := conn.StartTransientUnitContext(ctx, unit, "replace", p, done)
		if isError(err, "UnitExists") {
			return nil
		}
		if err != nil {
			return err
		}
		return await(ctx, "start", done)
	})
}

// set sets the properties of a slice, until the next reboot.
func (b *bus) set(ctx context.Context, path string, r Resources, unified bool) error {
	return b.call(ctx, func(ctx context.Context, conn *dbus.Conn, version int) error {
		p := r.properties(unified, version)
		if len(p) == 0 {
			return nil
		}
		return conn.SetUnitPropertiesContext(ctx, filepath.Base(path), true, p...)
	})
}

// stop stops and thereby removes a slice. A missing one is not an error.
func (b *bus) stop(ctx context.Context, path string) error {
	return b.call(ctx, func(ctx context.Context, conn *dbus.Conn, _ int) error {
		unit, done := filepath.Base(path), make(chan string, 1)
		_, err := conn.StopUnitContext(ctx, unit, "replace", done)
		if isError(err, "NoSuchUnit") {
			return nil
		}
		if err != nil {
			return err
		}
		err = await(ctx, "stop", done)
		_ = conn.ResetFailedUnitContext(ctx, unit) // usually there is nothing to reset
		return err
	})
}

func await(ctx context.Context, what string, done <-chan string) error {
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("%s: systemd says %s", what, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
}

func isError(err error, name string) bool {
	var e godbus.Error
	return errors.As(err, &e) && e.Name == "org.freedesktop.systemd1."+name
}

// properties returns the resources as systemd's properties.
func (r Resources) properties(unified bool, version int) (p []dbus.Property) {
	if r.Memory != 0 {
		name := "MemoryLimit"
		if unified {
			name = "MemoryMax"
		}
		p = append(p, property(name, uint64(r.Memory)))
	}
	switch {
	case r.Shares != 0 && unified:
		p = append(p, property("CPUWeight", uint64(Weight(r.Shares))))
	case r.Shares != 0:
		p = append(p, property("CPUShares", uint64(r.Shares)))
	}
	if r.Quota != 0 {
		perSecond := uint64(math.MaxUint64) // no limit
		if r.Quota > 0 {
			perSecond = uint64(r.Quota * 1e6 / r.period())
		}
		if version >= hasQuotaPeriod {
			p = append(p, property("CPUQuotaPeriodUSec", uint64(r.period())))
		}
		p = append(p, property("CPUQuotaPerSecUSec", perSecond))
	}
	if r.Pids != 0 {
		p = append(p, property("TasksMax", uint64(r.Pids)))
	}
	if r.CPUs != "" && unified && version >= hasAllowedCPUs {
		if mask, err := cpuMask(r.CPUs); err == nil {
			p = append(p, property("AllowedCPUs", mask))
		}
	}
	return p
}

func property(name string, value any) dbus.Property {
	return dbus.Property{Name: name, Value: godbus.MakeVariant(value)}
}

// wholePercent rounds a quota up to what systemd stores: whole percents of a core.
func wholePercent(quota, period int64) int64 {
	if quota <= 0 {
		return quota
	}
	const percent = 10000 // microseconds in a second
	perSecond := (quota*1e6/period + percent - 1) / percent * percent
	return perSecond * period / 1e6
}

// cpuMask converts a list such as 0-2,8 to bytes, the first cpu in the lowest bit.
func cpuMask(list string) ([]byte, error) {
	var mask []byte
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.ParseUint(from, 10, 16)
		b, err2 := strconv.ParseUint(to, 10, 16)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("list of cpus %q: %w", list, err)
		}
		for cpu := a; cpu <= b; cpu++ {
			for uint64(len(mask)) <= cpu/8 {
				mask = append(mask, 0)
			}
			mask[cpu/8] |= 1 << (cpu % 8)
		}
	}
	return mask, nil
}
