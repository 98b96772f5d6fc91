package cgroups

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// unitWait is how long systemd gets to start or stop a slice.
const unitWait = 30 * time.Second

// Versions of systemd in which properties appeared.
const (
	hasQuotaPeriod = 242
	hasAllowedCPUs = 244
)

// bus is systemd on its D-Bus, which makes a slice of the last part of each
// cgroup path. The connection is made when it is needed.
type bus struct {
	mu      sync.Mutex
	conn    *dbus.Conn
	version int
}

func (b *bus) connect(ctx context.Context) (*dbus.Conn, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil && b.conn.Connected() {
		return b.conn, b.version, nil
	}
	// The connection ends with the context that it is made with.
	conn, err := dbus.NewWithContext(context.WithoutCancel(ctx))
	if err != nil {
		return nil, 0, fmt.Errorf("systemd does not answer: %w", err)
	}
	text, err := conn.GetManagerProperty("Version")
	if err != nil {
		conn.Close()
		return nil, 0, fmt.Errorf("version of systemd: %w", err)
	}
	b.conn, b.version = conn, systemdVersion(text)
	return b.conn, b.version, nil
}

// systemdVersion returns the number in words such as "252.39-1~deb12u1" or "v245".
func systemdVersion(text string) int {
	text = strings.TrimLeft(text, `"v`)
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		text = text[:end]
	}
	n, _ := strconv.Atoi(text)
	return n
}

// start makes and starts a slice. One that exists is fine.
func (b *bus) start(ctx context.Context, path string) error {
	conn, _, err := b.connect(ctx)
	if err != nil {
		return err
	}
	unit := filepath.Base(path)
	p := []dbus.Property{dbus.PropDescription("pods: " + unit), property("DefaultDependencies", false)}
	if above := filepath.Base(filepath.Dir(path)); strings.HasSuffix(above, ".slice") {
		p = append(p, dbus.PropWants(above))
	}
	for _, name := range []string{"MemoryAccounting", "CPUAccounting", "IOAccounting", "TasksAccounting"} {
		p = append(p, property(name, true))
	}
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, unit, "replace", p, done)
	if isError(err, "UnitExists") {
		return nil
	}
	if err != nil {
		return err
	}
	return await(ctx, "start", done)
}

// set gives a slice its values, until the machine is rebooted.
func (b *bus) set(ctx context.Context, path string, r Resources, unified bool) error {
	conn, version, err := b.connect(ctx)
	if err != nil {
		return err
	}
	p := r.properties(unified, version)
	if len(p) == 0 {
		return nil
	}
	return conn.SetUnitPropertiesContext(ctx, filepath.Base(path), true, p...)
}

// stop stops and so removes a slice. One that does not exist is fine.
func (b *bus) stop(ctx context.Context, path string) error {
	conn, _, err := b.connect(ctx)
	if err != nil {
		return err
	}
	unit := filepath.Base(path)
	done := make(chan string, 1)
	_, err = conn.StopUnitContext(ctx, unit, "replace", done)
	if isError(err, "NoSuchUnit") {
		return nil
	}
	if err != nil {
		return err
	}
	err = await(ctx, "stop", done)
	_ = conn.ResetFailedUnitContext(ctx, unit) // there is nothing to reset as a rule
	return err
}

func await(ctx context.Context, what string, done <-chan string) error {
	timer := time.NewTimer(unitWait)
	defer timer.Stop()
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("%s: systemd says %s", what, result)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("%s: no answer from systemd within %s", what, unitWait)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func isError(err error, name string) bool {
	var e godbus.Error
	return errors.As(err, &e) && e.Name == "org.freedesktop.systemd1."+name
}

// properties says the resources in systemd's terms.
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

// wholePercent rounds a quota up to what systemd keeps: whole percents of a core.
func wholePercent(quota, period int64) int64 {
	if quota <= 0 {
		return quota
	}
	const percent = 10000 // microseconds in a second
	perSecond := (quota*1e6/period + percent - 1) / percent * percent
	return perSecond * period / 1e6
}

// cpuMask turns 0-2,8 into bytes, the first cpu lowest.
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
