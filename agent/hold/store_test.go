package hold

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
)

func moment(wall time.Time, boot string, up time.Duration) checkpoint.Moment {
	return checkpoint.Moment{Mark: checkpoint.Mark{Boot: boot, Up: up}, Wall: wall}
}

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
			if got := h.Over(moment(row.now, row.boot, row.up)); got != row.over {
				t.Errorf("over: %v", got)
			}
		})
	}
	if (Hold{Since: made}).Over(moment(made.AddDate(9, 0, 0), "b", 9999*time.Hour)) {
		t.Error("one without an end is over")
	}
	if text := h.Text(); text != "held until 2026-05-01 14:00:00 UTC" {
		t.Error(text)
	}
}

// A machine without a battery is told the time a few minutes after it started, and is rebooted.
func TestAHoldThatWasMadeBeforeTheClockWasSetIsNotOverForThat(t *testing.T) {
	h := Hold{Since: time.Unix(300, 0), At: checkpoint.Mark{Boot: "a", Up: 5 * time.Minute}, For: 24 * time.Hour}
	set := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name string
		now  checkpoint.Moment
		says string // "": it is over
	}{
		{"the clock is set", moment(set, "a", 10*time.Minute), "held until 2026-05-02 11:55:00 UTC"},
		{"and the machine is rebooted", moment(set.Add(time.Hour), "b", time.Minute), "held until 2026-05-02 12:59:00 UTC"},
		{"and runs on", moment(set.Add(24*time.Hour), "b", 23*time.Hour), "held until 2026-05-02 13:00:00 UTC"},
		{"for as long as it lasts", moment(set.Add(25*time.Hour), "b", 24*time.Hour), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			state := State{Held: map[string]Hold{"default/web": h}, Node: &h}
			now := state.at(row.now)
			held, is := now.Held["default/web"]
			switch {
			case row.says == "" && (is || now.Node != nil):
				t.Errorf("it says %q", held.Text())
			case row.says != "" && (held.Text() != row.says || now.Node == nil || now.Node.Text() != row.says):
				t.Errorf("it says %q, want %q", held.Text(), row.says)
			}
		})
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

// A former agent reads the record without the locks, and writes it without them.
func TestAFormerAgentReadsARecordWithLocks(t *testing.T) {
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	open := func() *Store {
		s, err := Open(root, checkpoint.Boot{ID: "a"}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	lock := Lock{UID: "u", File: "/data/lock", Since: moment(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), "a", time.Hour)}
	s := open()
	if err := s.Change(func(now *State) {
		now.Held["default/web"] = s.Hold("audit", 0)
		now.Locks = map[string]Lock{"default/web": lock}
	}); err != nil {
		t.Fatal(err)
	}
	if got := open().State().Locks["default/web"]; got != lock {
		t.Errorf("the next agent has %+v", got)
	}
	var former struct { // as it was before there were locks
		Stopped map[string]Stop `json:"stopped,omitempty"`
		Held    map[string]Hold `json:"held,omitempty"`
		Node    *Hold           `json:"node,omitempty"`
	}
	if err := disk.Read(root.Path(file), disk.JSON(&former)); err != nil || former.Held["default/web"].Reason != "audit" {
		t.Errorf("a former agent has %+v, %v", former, err)
	}
}

// noDisk lets a store find no folder for its record until the result is called.
func noDisk(t *testing.T, s *Store) (back func()) {
	t.Helper()
	at := s.path
	s.path = filepath.Join(t.TempDir(), "gone", file)
	return func() { s.path = at }
}

func TestAStopThatIsOverCountsNoLongerThoughTheDiskDoesNotTakeIt(t *testing.T) {
	root, err := checkpoint.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s, err := Open(root, checkpoint.Boot{ID: "a"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := func(names ...string) error {
		return s.Change(func(now *State) {
			for _, name := range names {
				now.Stopped[name] = Stop{Since: time.Unix(1, 0)}
			}
		})
	}
	if err := stop("default/a", "default/b"); err != nil {
		t.Fatal(err)
	}
	back := noDisk(t, s)
	if !s.EndStops([]string{"default/a", "default/other"}) || s.EndStops([]string{"default/other"}) {
		t.Error("what is over, or not, is not said")
	}
	says := func(when, want string) {
		t.Helper()
		got := strings.Join(slices.Sorted(maps.Keys(s.State().Stopped)), " ") + " | " + strings.Join(slices.Sorted(maps.Keys(Recorded(root.Dir).Stopped)), " ")
		if got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	says("at once", "default/b | default/a default/b")
	if s.Change(func(*State) {}) == nil {
		t.Error("the disk takes it")
	}
	says("not taken", "default/b | default/a default/b")
	if stop("default/a") == nil {
		t.Error("the disk takes another stop")
	}
	says("stopped again in vain", "default/b | default/a default/b")
	back()
	if err := stop("default/a"); err != nil {
		t.Error(err)
	}
	says("stopped again", "default/a default/b | default/a default/b")
	s.EndStops([]string{"default/a"})
	if err := s.Change(func(*State) {}); err != nil {
		t.Error(err)
	}
	says("taken", "default/b | default/b")
}
