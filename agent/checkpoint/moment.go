package checkpoint

import "time"

// Moment is a moment by both the boot clock and the wall clock, for durations that outlive a boot.
type Moment struct {
	Mark
	Wall time.Time `json:"wall"` // by the wall clock of that moment
}

// Now returns the current moment.
func (b Boot) Now() Moment { return Moment{Mark: b.Mark(), Wall: time.Now()} }

// IsZero reports whether it is no moment.
func (m Moment) IsZero() bool { return m.Wall.IsZero() }

// Since returns the time from the moment to now, which is never negative. Within a boot it is
// counted by the marks, however the wall clock was set. Over a reboot the time for which the
// machine was off counts, too, if both clocks are believable; otherwise the result is the uptime:
// too little if the machine was rebooted several times, and never too much.
func (m Moment) Since(now Moment) time.Duration {
	since, same := m.Mark.Since(now.Mark)
	if same {
		return since
	}
	var ran, passed time.Duration
	if m.Boot != "" && now.Boot != "" {
		ran = now.Up
	}
	if IsBelievable(m.Wall) && IsBelievable(now.Wall) {
		passed = now.Wall.Sub(m.Wall)
	}
	return max(ran, passed)
}

// believable is before any agent ran: a clock that was never set, as in a machine without a
// battery, starts in 1970, in 2000, or at the date of its firmware.
var believable = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// IsBelievable reports whether the clock with this time was set.
func IsBelievable(wall time.Time) bool { return !wall.Before(believable) }
