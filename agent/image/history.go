package image

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"time"

	"monopod/agent/disk"
)

// history is when images were first seen and last used, by id.
type history map[string]record

// record is one image's.
type record struct {
	First time.Time `json:"first"`
	Used  time.Time `json:"used,omitzero"` // zero: never, as far as is known
	InUse bool      `json:"inUse,omitempty"`
}

// loadHistory reads what the previous agent wrote. No time in it is in the future. Times of a clock
// that was not set become now: an image must not seem unused for decades once the clock is set.
func loadHistory(c CollectorConfig, now time.Time) history {
	h := history{}
	if c.History == "" {
		return h
	}
	err := disk.ReadOrAside(c.History, disk.JSON(&h))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn("when images were used is not known any more", "err", err)
	}
	if h == nil { // the file says null
		h = history{}
	}
	for id, r := range h {
		if !c.ClockSet(r.First) {
			r.First = now
		}
		if !r.Used.IsZero() && !c.ClockSet(r.Used) {
			r.Used = now
		}
		h[id] = r.notAfter(now)
	}
	return h
}

func (r record) notAfter(now time.Time) record {
	if r.First.After(now) {
		r.First = now
	}
	if r.Used.After(now) {
		r.Used = now
	}
	return r
}

// update records the images that are there now. What was in use the last time counts as used until
// now, even if the agent was restarted in between. It reports whether that must be written to
// disk: changed times alone need not be.
func (h history) update(all []*Entry, now time.Time, first time.Time) (changed bool) {
	seen := map[string]bool{}
	for _, e := range all {
		r, known := h[e.ID]
		if !known {
			r.First = first
		}
		r = r.notAfter(now)
		inUse := len(e.Users) > 0
		if inUse || r.InUse {
			r.Used = now
		}
		changed = changed || !known || r.InUse != inUse
		r.InUse = inUse
		h[e.ID], seen[e.ID] = r, true
	}
	before := len(h)
	maps.DeleteFunc(h, func(id string, _ record) bool { return !seen[id] })
	return changed || len(h) != before
}

// remember updates the history and writes it if necessary.
func (c *Collector) remember(all []*Entry, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := now
	if len(c.history) == 0 { // these were here before the agent, so they were not pulled just now
		first = now.Add(-c.Bounds().MinAge)
	}
	changed := c.history.update(all, now, first)
	if !changed || c.config.History == "" {
		return nil
	}
	data, err := json.Marshal(c.history)
	if err != nil {
		return err
	}
	return disk.WriteFile(c.config.History, data, 0o600)
}

// date fills in the times of the history.
func (c *Collector) date(all []*Entry, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range all {
		r, known := c.history[e.ID]
		if !known {
			r.First = now
		}
		e.FirstSeen, e.LastUsed = r.First, r.Used
		if len(e.Users) > 0 {
			e.LastUsed = now
		}
	}
}
