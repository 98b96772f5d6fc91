package image

import (
	"strings"
	"testing"
	"time"
)

func TestJudgement(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	ago := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
	disk := func(used uint64) *Disk { return &Disk{Capacity: 100, Available: 100 - used} }
	for _, row := range []struct {
		name   string
		all    []*Entry
		disk   *Disk
		limits Limits
		want   string // "id: why" of each, those that go with an exclamation mark
	}{
		{"room for all", []*Entry{{ID: "a", FirstSeen: ago(1)}}, disk(84), Limits{}, "a: unused; goes as number 1 when the disk is 85 % full (now 84 %)"},
		{"no room", []*Entry{{ID: "a", Size: 9, FirstSeen: ago(1)}}, disk(85), Limits{}, "a!: unused, and the disk is 85 % full"},
		{"only as many as are needed, oldest used first",
			[]*Entry{{ID: "a", Size: 3, FirstSeen: ago(9), LastUsed: ago(1)}, {ID: "b", Size: 3, FirstSeen: ago(9), LastUsed: ago(2)}, {ID: "c", Size: 3, FirstSeen: ago(9), LastUsed: ago(3)}},
			disk(85), Limits{}, "a: unused; goes as number 3 when the disk is 85 % full (now 85 %)|b!: unused, and the disk is 85 % full|c!: unused, and the disk is 85 % full"},
		{"never used before used, then oldest seen first",
			[]*Entry{{ID: "a", Size: 5, FirstSeen: ago(9), LastUsed: ago(5)}, {ID: "b", Size: 5, FirstSeen: ago(1)}, {ID: "c", Size: 5, FirstSeen: ago(2)}},
			disk(85), Limits{}, "a: unused; goes as number 3 when the disk is 85 % full (now 85 %)|b: unused; goes as number 2 when the disk is 85 % full (now 85 %)|c!: unused, and the disk is 85 % full"},
		{"what is needed stays", []*Entry{{ID: "a", Users: []string{"x/y", "x/z"}}, {ID: "b", Pinned: true}, {ID: "c", FirstSeen: now.Add(-time.Minute)}},
			disk(99), Limits{MaxAge: time.Nanosecond}, "a: used by x/y, x/z|b: pinned by the runtime|c: unused, and here for less than 2m"},
		{"too old", []*Entry{{ID: "a", FirstSeen: ago(9), LastUsed: ago(5)}, {ID: "b", FirstSeen: ago(9), LastUsed: ago(3)}, {ID: "c", FirstSeen: ago(3)}, {ID: "d", FirstSeen: ago(5)}},
			disk(1), Limits{MaxAge: 4 * time.Hour, High: 100, Low: 99}, "a!: unused for more than 4h|b: unused|c: unused|d!: unused for more than 4h"},
		{"what is too old makes room", []*Entry{{ID: "a", Size: 5, FirstSeen: ago(9)}, {ID: "b", Size: 5, FirstSeen: ago(1)}},
			disk(85), Limits{MaxAge: 4 * time.Hour}, "a!: unused for more than 4h|b: unused; goes as number 1 when the disk is 85 % full (now 85 %)"},
		{"never for room", []*Entry{{ID: "a", Size: 5, FirstSeen: ago(9)}}, disk(99), Limits{High: 100, Low: 50}, "a: unused"},
		{"a disk that is not known", []*Entry{{ID: "a", Size: 5, FirstSeen: ago(9)}}, nil, Limits{}, "a: unused; how full the disk is, is not known"},
	} {
		t.Run(row.name, func(t *testing.T) {
			classify(row.all, row.disk, row.limits.Complete(), now)
			var got []string
			for _, e := range row.all {
				mark := ""
				if e.Collect {
					mark = "!"
				}
				got = append(got, e.ID+mark+": "+e.Why)
			}
			if got := strings.Join(got, "|"); got != row.want {
				t.Errorf("\ngot  %s\nwant %s", got, row.want)
			}
		})
	}
}
