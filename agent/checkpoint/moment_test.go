package checkpoint

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTimePassesByTheBootClockAndOverARebootByBelievableClocks(t *testing.T) {
	set, unset := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), time.Unix(300, 0)
	at := func(boot string, up time.Duration, wall time.Time) Moment { return Moment{Mark{boot, up}, wall} }
	for _, row := range []struct {
		name     string
		was, now Moment
		want     time.Duration
	}{
		{"in a boot it goes by the mark", at("a", time.Hour, set), at("a", 3*time.Hour, set.Add(time.Minute)), 2 * time.Hour},
		{"though the clock is set meanwhile", at("a", 5*time.Minute, unset), at("a", 10*time.Minute, set), 5 * time.Minute},
		{"and never goes back", at("a", time.Hour, set), at("a", time.Minute, set), 0},
		{"over a reboot the time off counts", at("a", time.Hour, set), at("b", time.Minute, set.Add(2*time.Hour)), 2 * time.Hour},
		{"but for a clock that was not set then", at("a", 5*time.Minute, unset), at("b", time.Minute, set), time.Minute},
		{"or is not set now", at("a", time.Hour, set), at("b", time.Minute, unset), time.Minute},
		{"or shows less than the machine has run", at("a", time.Hour, set), at("b", time.Hour, set.Add(time.Minute)), time.Hour},
		{"or goes back", at("a", time.Hour, set), at("b", time.Minute, set.Add(-time.Hour)), time.Minute},
		{"without marks it goes by the clocks", at("", 9*time.Hour, set), at("", 9*time.Hour, set.Add(time.Minute)), time.Minute},
		{"and by nothing if these say nothing", at("", 9*time.Hour, unset), at("", 9*time.Hour, set), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.was.Since(row.now); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}

func TestAMomentIsSaved(t *testing.T) {
	was := Moment{Mark{"a", time.Hour}, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	b, err := json.Marshal(was)
	if want := `{"boot":"a","up":3600000000000,"wall":"2026-05-01T12:00:00Z"}`; err != nil || string(b) != want {
		t.Fatalf("%s, %v", b, err)
	}
	var read Moment
	if err := json.Unmarshal(b, &read); err != nil || read != was {
		t.Errorf("%+v, %v", read, err)
	}
}
