// Package window has the times of the week in which pods may be updated.
package window

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"monopod/agent/message"
)

// Window is a time of the week in which pods may be updated and removed: it begins at a time of the
// day, in local time, and has a fixed length, also in a night in which the clock is put forward or
// back.
type Window struct {
	days  [7]bool       // on which it begins, by time.Weekday
	from  time.Duration // since midnight, by the clock
	lasts time.Duration
}

// Windows are several windows; none means no limit.
type Windows []Window

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

const day = 24 * time.Hour

// Parse parses windows such as "Sun 02:00-04:00, Mon-Fri 23:00-01:00, 12:00-13:00", separated by
// commas. Without days a window is on every day. The errors quote nothing of the text.
func Parse(text string) (Windows, error) {
	var all Windows
	for k, part := range strings.Split(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		w, err := parse(part)
		if err != nil {
			return nil, fmt.Errorf("window %d: %w; want windows such as `Sun 02:00-04:00` or `Mon-Fri 23:00-01:00`, separated by commas", k+1, err)
		}
		all = append(all, w)
	}
	return all, nil
}

func parse(text string) (w Window, err error) {
	words := strings.Fields(text)
	switch len(words) {
	case 1:
		w.days = [7]bool{true, true, true, true, true, true, true}
	case 2:
		if w.days, err = parseDays(words[0]); err != nil {
			return w, err
		}
	default:
		return w, errors.New("it is not days and a time")
	}
	from, to, ok := strings.Cut(words[len(words)-1], "-")
	if !ok {
		return w, errors.New("it has no time from-to")
	}
	if w.from, err = parseClock(from, false); err != nil {
		return w, err
	}
	end, err := parseClock(to, true)
	if err != nil {
		return w, err
	}
	if w.lasts = end - w.from; w.lasts == 0 {
		return w, errors.New("it ends when it begins")
	}
	if w.lasts < 0 {
		w.lasts += day
	}
	return w, nil
}

// parseDays parses a day, or a range of days that may extend over the end of the week.
func parseDays(text string) (days [7]bool, err error) {
	first, last, several := strings.Cut(text, "-")
	if !several {
		last = first
	}
	k, end := slices.Index(weekdays, strings.ToLower(first)), slices.Index(weekdays, strings.ToLower(last))
	if k < 0 || end < 0 {
		return days, errors.New("it has no day before the time: they are Sun, Mon, Tue, Wed, Thu, Fri, Sat")
	}
	for ; k != end; k = (k + 1) % 7 {
		days[k] = true
	}
	days[end] = true
	return days, nil
}

func parseClock(text string, end bool) (time.Duration, error) {
	hours, minutes, ok := strings.Cut(text, ":")
	h, errH := strconv.ParseUint(hours, 10, 8)
	m, errM := strconv.ParseUint(minutes, 10, 8)
	at := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if !ok || errH != nil || errM != nil || len(hours) != 2 || len(minutes) != 2 || m > 59 || at > day || at == day && !end {
		return 0, errors.New("it has no time of the day such as 02:00")
	}
	return at, nil
}

// Closed returns a text that no window is open, with the time of the next; "": one is open.
func (all Windows) Closed(now time.Time) string {
	if all.Open(now) {
		return ""
	}
	next := all.Next(now).Local()
	return "outside of the update window, which opens " + next.Format("Mon ") + string(message.Time(next))
}

// Open reports whether any window is open.
func (all Windows) Open(now time.Time) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(w Window) bool {
		for k := -2; k <= 0; k++ {
			if from, begins := w.begins(now, k); begins && !now.Before(from) && now.Before(from.Add(w.lasts)) {
				return true
			}
		}
		return false
	})
}

// Next returns when the next window opens. There must be at least one window.
func (all Windows) Next(now time.Time) (next time.Time) {
	for _, w := range all {
		for k := -1; k <= 7; k++ {
			if from, begins := w.begins(now, k); begins && from.After(now) && (next.IsZero() || from.Before(next)) {
				next = from
			}
		}
	}
	return next
}

// begins returns when the window begins on the day that is so many days after now. A time in the
// hour that the clock skips is moved by that hour, to after the change, in every time zone.
func (w Window) begins(now time.Time, days int) (at time.Time, begins bool) {
	y, m, d := now.Date()
	noon := time.Date(y, m, d+days, 12, 0, 0, 0, now.Location())
	y, m, d = noon.Date()
	at = time.Date(y, m, d, int(w.from/time.Hour), int(w.from%time.Hour/time.Minute), 0, 0, now.Location())
	if early := clock(y, m, d, w.from).Sub(clock(at.Year(), at.Month(), at.Day(), timeOfDay(at))); early > 0 { // time.Date goes back in some zones
		at = at.Add(early)
	}
	if first := at.Add(-time.Hour); first.Hour() == at.Hour() { // in an hour that occurs twice
		at = first
	}
	return at, w.days[noon.Weekday()]
}

// clock returns what the clock shows at a time of a day, as a time in UTC, which skips no hour.
func clock(y int, m time.Month, d int, at time.Duration) time.Time {
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Add(at)
}

func timeOfDay(t time.Time) time.Duration {
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}
