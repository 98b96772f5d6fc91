package checkpoint

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// Boot is the boot of the machine that the agent runs in.
type Boot struct {
	ID     string               // "": not known
	Since  time.Time            // when the machine booted, by the current clock; zero: not known
	Uptime func() time.Duration // the time since the boot, suspend included; nil: not known
}

// ReadBoot reads the current boot from the kernel.
func ReadBoot() Boot {
	b := Boot{Uptime: uptime}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		b.ID = strings.TrimSpace(string(id))
	}
	if up := uptime(); up > 0 {
		b.Since = time.Now().Add(-up)
	}
	return b
}

// LastBoot returns the id of the boot that a file contains; "": none is known.
func (r *Root) LastBoot(path string) (id string) {
	err := disk.ReadOrAside(path, func(b []byte) error {
		if id = strings.TrimSpace(string(b)); !bootForm.MatchString(id) {
			id = ""
			return errors.New("it does not hold the id of a boot")
		}
		return nil
	})
	if err != nil {
		r.lost(r.log, "whether the machine was rebooted since the last start is not known", err)
	}
	return id
}

var bootForm = regexp.MustCompile(`^[0-9a-f-]{36}$`)

// uptime returns CLOCK_BOOTTIME; 0 if the kernel does not report it.
func uptime() time.Duration {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return 0
	}
	return time.Duration(up.Nano())
}

// Mark is a moment of a boot. Setting the machine's clock changes no mark: a duration that must
// outlive the agent is counted from one.
type Mark struct {
	Boot string        `json:"boot"`
	Up   time.Duration `json:"up"` // since the boot, ns
}

// Mark returns the current moment.
func (b Boot) Mark() Mark {
	if b.Uptime == nil {
		return Mark{Boot: b.ID}
	}
	return Mark{Boot: b.ID, Up: b.Uptime()}
}

// Counts reports whether time may be counted from the mark.
func (m Mark) Counts() bool { return m.Boot != "" || m.Up > 0 }

// Since returns the time from the mark to now, which is never negative. ok is
// false if they are of different boots, or the boot is not known.
func (m Mark) Since(now Mark) (d time.Duration, ok bool) {
	return max(now.Up-m.Up, 0), m.Boot != "" && m.Boot == now.Boot
}

// Active is how long a pod has been active: Before, and the time since the mark if that is of the
// current boot. The time for which the machine was off does not count; nor does, after a crash of
// the machine, the time since the last save. If no boot is known, a mark counts as one of the
// current boot unless its uptime is larger than the present one: the counted time is then at most
// the time since the machine booted.
type Active struct {
	Mark
	Before time.Duration `json:"before,omitempty"` // ns
}

// At returns how long the pod has been active. counts is false if the mark is of another boot, or
// there is none.
func (a *Active) At(now Mark) (d time.Duration, counts bool) {
	since, same := a.Since(now)
	unknown := a.Boot == "" && now.Boot == "" && 0 < a.Up && a.Up <= now.Up
	if !same && !unknown {
		return a.Before, false
	}
	return a.Before + since, true
}
