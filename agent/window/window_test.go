package window

import (
	"strings"
	"testing"
	"time"

	"monopod/agent/message"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	l, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWindowsOpenAndClose(t *testing.T) {
	// 2026-05-03 is a Sunday. The clock goes forward on 2026-03-29 02:00 and back on 2026-10-25 03:00.
	rows := []struct {
		name, windows, at string
		open              bool
		next              string
	}{
		{"none", "", "2026-05-03T12:00:00+02:00", true, ""},
		{"before", "Sun 02:00-04:00", "2026-05-03T01:59:59+02:00", false, "2026-05-03T02:00:00+02:00"},
		{"at its begin", "Sun 02:00-04:00", "2026-05-03T02:00:00+02:00", true, "2026-05-10T02:00:00+02:00"},
		{"in it", "sun 02:00-04:00", "2026-05-03T03:59:59+02:00", true, "2026-05-10T02:00:00+02:00"},
		{"at its end", "Sun 02:00-04:00", "2026-05-03T04:00:00+02:00", false, "2026-05-10T02:00:00+02:00"},
		{"another day", "Sun 02:00-04:00", "2026-05-04T03:00:00+02:00", false, "2026-05-10T02:00:00+02:00"},
		{"before its minute", "02:30-03:45", "2026-05-03T02:29:59+02:00", false, "2026-05-03T02:30:00+02:00"},
		{"at its minute", "02:30-03:45", "2026-05-03T02:30:00+02:00", true, "2026-05-04T02:30:00+02:00"},
		{"before its last minute ends", "02:30-03:45", "2026-05-03T03:44:59+02:00", true, "2026-05-04T02:30:00+02:00"},
		{"at its last minute", "02:30-03:45", "2026-05-03T03:45:00+02:00", false, "2026-05-04T02:30:00+02:00"},
		{"the last minute of an hour", "02:59-03:59", "2026-05-03T02:59:00+02:00", true, "2026-05-04T02:59:00+02:00"},
		{"past midnight, before it", "Fri 23:00-01:00", "2026-05-01T23:30:00+02:00", true, "2026-05-08T23:00:00+02:00"},
		{"past midnight, after it", "Fri 23:00-01:00", "2026-05-02T00:59:00+02:00", true, "2026-05-08T23:00:00+02:00"},
		{"not the midnight before", "Fri 23:00-01:00", "2026-05-01T00:30:00+02:00", false, "2026-05-01T23:00:00+02:00"},
		{"to the end of the day", "22:00-24:00", "2026-05-01T23:59:59+02:00", true, "2026-05-02T22:00:00+02:00"},
		{"and no longer", "22:00-24:00", "2026-05-02T00:00:00+02:00", false, "2026-05-02T22:00:00+02:00"},
		{"all of some days", "Sat-Sun 00:00-24:00", "2026-05-03T12:00:00+02:00", true, "2026-05-09T00:00:00+02:00"},
		{"a range", "Mon-Fri 12:00-13:00", "2026-05-02T12:30:00+02:00", false, "2026-05-04T12:00:00+02:00"},
		{"a range over the week's end", "Sat-Mon 12:00-13:00", "2026-05-03T12:30:00+02:00", true, "2026-05-04T12:00:00+02:00"},
		{"the first of several", "Sun 02:00-04:00, Sat 01:00-02:00,", "2026-05-01T12:00:00+02:00", false, "2026-05-02T01:00:00+02:00"},
		{"a time that the clock leaves out", "Sun 02:00-03:00", "2026-03-29T01:30:00+01:00", false, "2026-03-29T03:00:00+02:00"},
		{"which is as long as ever", "Sun 02:00-03:00", "2026-03-29T03:59:59+02:00", true, "2026-04-05T02:00:00+02:00"},
		{"and ends", "Sun 02:00-03:00", "2026-03-29T04:00:00+02:00", false, "2026-04-05T02:00:00+02:00"},
		{"an hour that comes twice", "Sun 02:00-03:00", "2026-10-25T02:30:00+02:00", true, "2026-11-01T02:00:00+01:00"},
		{"counts once", "Sun 02:00-03:00", "2026-10-25T02:30:00+01:00", false, "2026-11-01T02:00:00+01:00"},
		{"a night in which the clock goes back", "Sat 23:00-05:00", "2026-10-25T03:59:59+01:00", true, "2026-10-31T23:00:00+01:00"},
		{"has as many hours", "Sat 23:00-05:00", "2026-10-25T04:00:00+01:00", false, "2026-10-31T23:00:00+01:00"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			all, err := Parse(row.windows)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, row.at)
			if err != nil {
				t.Fatal(err)
			}
			at = at.In(berlin(t))
			next := ""
			if len(all) > 0 {
				next = all.Next(at).Format(time.RFC3339)
			}
			closed := all.Closed(at)
			if row.open && closed != "" || !row.open && (!strings.HasPrefix(closed, "outside of the update window, which opens ") || !strings.HasSuffix(closed, " "+string(message.Time(all.Next(at))))) {
				t.Errorf("it says %q", closed)
			}
			if all.Open(at) != row.open || next != row.next {
				t.Errorf("open %v, next %s; want %v, %s", all.Open(at), next, row.open, row.next)
			}
		})
	}
}

// A time that the clock leaves out is after that, in zones on both sides of Greenwich, and never
// before, when another day may be shown.
func TestAWindowOpensAfterTheHourThatIsLeftOut(t *testing.T) {
	for _, row := range []struct{ zone, windows, before, opens, last string }{
		{"Europe/Berlin", "Sun 02:30-03:30", "2026-03-29T01:59:00+01:00", "2026-03-29T03:30:00+02:00", "2026-03-29T04:29:59+02:00"},
		{"America/New_York", "Sun 02:30-03:30", "2026-03-08T01:59:00-05:00", "2026-03-08T03:30:00-04:00", "2026-03-08T04:29:59-04:00"},
		{"America/Havana", "Sun 00:00-02:00", "2018-03-10T23:59:00-05:00", "2018-03-11T01:00:00-04:00", "2018-03-11T02:59:59-04:00"},
		{"Australia/Lord_Howe", "Sun 02:15-03:00", "2025-10-05T01:59:00+10:30", "2025-10-05T02:45:00+11:00", "2025-10-05T03:29:59+11:00"},
	} {
		zone, err := time.LoadLocation(row.zone)
		if err != nil {
			t.Fatal(err)
		}
		all, err := Parse(row.windows)
		if err != nil {
			t.Fatal(err)
		}
		at := func(text string) time.Time {
			when, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return when.In(zone)
		}
		opens, last := at(row.opens), at(row.last)
		if next := all.Next(at(row.before)); all.Open(at(row.before)) || !next.Equal(opens) {
			t.Errorf("%s: open before: %v, next %s", row.zone, all.Open(at(row.before)), next)
		}
		if all.Open(opens.Add(-time.Second)) || !all.Open(opens) || !all.Open(last) || all.Open(last.Add(time.Second)) {
			t.Errorf("%s: open %v %v %v %v", row.zone, all.Open(opens.Add(-time.Second)), all.Open(opens), all.Open(last), all.Open(last.Add(time.Second)))
		}
	}
}

func TestAWindowThatIsNoneIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"Sunday 02:00-04:00": "no day before the time", "Sun": "no time from-to", "Sun 2:00-04:00": "no time of the day", "Sun 24:00-02:00": "no time of the day",
		"02:00-25:00": "no time of the day", "02:00-02:00": "ends when it begins", "Sun Mon 02:00-04:00": "not days and a time", "02:60-04:00": "no time of the day",
		"Sun 02:00-04:00, x": "window 2: it has no time from-to", "-1:00-04:00": "no time of the day",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "Sun 02:00-04:00") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
