package image

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// classify decides for each image whether it is removed, and why. disk is nil if its usage is not
// known. It returns the images to remove, then those that could be, in the order of their removal;
// it is a pure function.
func classify(all []*Entry, disk *Disk, l Limits, now time.Time) (aged, spare []*Entry) {
	for _, e := range all {
		unused := now.Sub(latest(e.LastUsed, e.FirstSeen))
		switch {
		case len(e.Users) > 0:
			e.Why = "used by " + strings.Join(e.Users, ", ")
		case e.Archive != "":
			e.Why = "in archive " + e.Archive
		case e.Pinned:
			e.Why = "pinned by the runtime"
		case now.Sub(e.FirstSeen) < l.MinAge:
			e.Why = fmt.Sprintf("unused, and here for less than %s", short(l.MinAge))
		case l.MaxAge > 0 && unused > l.MaxAge:
			e.Collect, e.Why = true, fmt.Sprintf("unused for more than %s", short(l.MaxAge))
			aged = append(aged, e)
		default:
			spare = append(spare, e)
		}
	}
	slices.SortStableFunc(spare, func(a, b *Entry) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.ID, b.ID))
	})
	classifyForSpace(aged, spare, disk, l)
	return aged, spare
}

// classifyForSpace decides which of the spare images are removed to free space.
func classifyForSpace(aged, spare []*Entry, disk *Disk, l Limits) {
	var missing uint64
	if disk != nil && l.High < 100 && disk.Used() >= l.High {
		missing = disk.missing(l.Low)
	}
	for _, e := range aged {
		missing -= min(e.Size, missing)
	}
	for k, e := range spare {
		switch {
		case missing > 0:
			e.Collect, e.Why = true, fmt.Sprintf("unused, and the disk is %d %% full", disk.Used())
			missing -= min(e.Size, missing)
		case l.High >= 100:
			e.Why = "unused"
		case disk == nil:
			e.Why = "unused; how full the disk is, is not known"
		default:
			e.Why = fmt.Sprintf("unused; goes as number %d when the disk is %d %% full (now %d %%)", k+1, l.High, disk.Used())
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// short prints a duration without parts that are zero.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
