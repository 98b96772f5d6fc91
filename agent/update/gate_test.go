package update

import (
	"testing"
	"time"

	"monopod/agent/window"
)

func TestReasonsStandInOneOrder(t *testing.T) {
	sunday, err := window.Parse("Sun 02:00-04:00")
	if err != nil {
		t.Fatal(err)
	}
	friday := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	closed := "outside of the update window, which opens Sun 2026-05-03T02:00:00Z"
	lock := "locked by its workload: /data/lock, at most until 2026-05-01T13:00:00Z"
	rows := []struct {
		name            string
		gate            Gate
		update, removal string
	}{
		{"nothing", Gate{Now: friday}, "", ""},
		{"a hold", Gate{Now: friday, Holds: []string{"held: audit"}}, "held: audit", "held: audit"},
		{"the window", Gate{Now: friday, Windows: sunday}, closed, closed},
		{"a lock, which keeps no removal", Gate{Now: friday, Lock: "/data/lock", LockEnds: friday.Add(time.Hour)}, lock, ""},
		{"all", Gate{Now: friday, Holds: []string{"held: audit", "the node is held"}, Windows: sunday, Lock: "/data/lock", LockEnds: friday.Add(time.Hour)},
			"held: audit; the node is held; " + closed + "; " + lock, "held: audit; the node is held; " + closed},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if u, r := row.gate.Update(), row.gate.Removal(); u != row.update || r != row.removal {
				t.Errorf("update %q, removal %q", u, r)
			}
		})
	}
}
