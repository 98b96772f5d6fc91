package checkpoint

import "time"

// Moment is a moment by both clocks, for durations that outlive a boot.
type Moment struct {
	Mark
	Wall time.Time `json:"wall"` // by the machine's clock then
}

// Now returns the current moment.
func (b Boot) Now() Moment { return Moment{Mark: b.Mark(), Wall: time.Now()} }

// IsZero reports whether it is no moment.
func (m Moment) IsZero() bool { return m.Wall.IsZero() }

// Since returns the time from the moment to now, which is never negative. In a boot that goes
// by the marks, whatever the clock was set to. Over a reboot the time for which the machine was
// off counts, too, if both clocks are believable; else it is for how long it has run since: that
// is too little if it was rebooted several times, and never too much.
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

// believable is before any agent ran: a clock that was never set, as of a machine without a
// battery, begins in 1970, or in 2000, or when its firmware was made.
var believable = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// IsBelievable reports whether the clock that shows this was set.
func IsBelievable(wall time.Time) bool { return !wall.Before(believable) }
