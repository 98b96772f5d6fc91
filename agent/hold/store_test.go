package hold

import (
	"testing"
	"time"

	"monopod/agent/checkpoint"
)

func TestAHoldIsOverAfterItsTime(t *testing.T) {
	made := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	h := Hold{Since: made, At: checkpoint.Mark{Boot: "a", Up: time.Hour}, For: 2 * time.Hour}
	broken := time.Unix(0, 0)
	rows := []struct {
		name string
		now  time.Time
		boot string
		up   time.Duration
		over bool
	}{
		{"just made", made, "a", time.Hour, false},
		{"before its end", made.Add(119 * time.Minute), "a", 179 * time.Minute, false},
		{"at its end", made.Add(2 * time.Hour), "a", 3 * time.Hour, true},
		{"the clock is put forward", made.AddDate(1, 0, 0), "a", 2 * time.Hour, false},
		{"the clock is put back", broken, "a", 3 * time.Hour, true},
		{"rebooted, before its end", made.Add(time.Hour), "b", time.Minute, false},
		{"rebooted, at its end", made.Add(2 * time.Hour), "b", time.Minute, true},
		{"rebooted without a clock", broken, "b", 119 * time.Minute, false},
		{"rebooted without a clock, for as long as it lasts", broken, "b", 2 * time.Hour, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := h.Over(row.now, checkpoint.Mark{Boot: row.boot, Up: row.up}); got != row.over {
				t.Errorf("over: %v", got)
			}
		})
	}
	if (Hold{Since: made}).Over(made.AddDate(9, 0, 0), checkpoint.Mark{Boot: "b", Up: 9999 * time.Hour}) {
		t.Error("one without an end is over")
	}
	if text := h.Text(); text != "held until 2026-05-01T14:00:00Z" {
		t.Error(text)
	}
}

func TestAStoreSaysWhatIsHeldUntilWhen(t *testing.T) {
	s := &Store{}
	if err := s.Change(func(now *State) {
		now.Held["default/web"] = s.Hold("audit", 0)
		node := s.Hold("", time.Hour)
		now.Node = &node
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"default/web": "held: audit", "default/other": "", "": s.State().Node.Text()}
	for pod, text := range want {
		if got := s.Held(pod).String(); got != text {
			t.Errorf("%q: %q, want %q", pod, got, text)
		}
	}
}
