package oom

import (
	"strconv"
	"testing"
	"time"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

func TestTheNewestKillsAreKept(t *testing.T) {
	kills := Kills{isUpToDate: true}
	for n := range kept + 2 {
		kills.add(Kill{PID: n, Cgroup: "/pod/c" + strconv.Itoa(n/2) + "/"})
	}
	for id, want := range map[string]int{"c0/": -1, "c1/": 3, "c256/": 513, "none": -1, "": -1} {
		got := kills.Last(id, time.Time{})
		if pid := -1; got != nil {
			if pid = got.PID; pid != want {
				t.Errorf("%q: %d, want %d", id, pid, want)
			}
		} else if want != -1 {
			t.Errorf("%q: none, want %d", id, want)
		}
	}
	if len(kills.all) != kept {
		t.Errorf("%d kept", len(kills.all))
	}
}

func TestTheOnlyKillIsKnown(t *testing.T) {
	kills := Kills{isUpToDate: true}
	kills.add(Kill{PID: 7, Cgroup: "/pod/c1"})
	if got := kills.Last("c1", time.Time{}); got == nil || got.PID != 7 {
		t.Errorf("%+v", got)
	}
}

func TestWithoutALogThereAreNone(t *testing.T) {
	if got := (*Kills)(nil).Last("c1", time.Time{}); got != nil {
		t.Error(got)
	}
}
