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

// loadHistory reads what the previous agent wrote. Times of a clock that was not set become now: an
// image must not seem unused for decades once the clock is set.
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
		h[id] = r
	}
	h.correct(c.ClockSet, now)
	return h
}

// correct adjusts all times to the clock. Before it is set, nothing is known of the times of former
// boots: they stay.
func (h history) correct(isSet func(time.Time) bool, now time.Time) {
	if !isSet(now) {
		return
	}
	for id, r := range h {
		r.First = corrected(r.First, isSet, now)
		if !r.Used.IsZero() {
			r.Used = corrected(r.Used, isSet, now)
		}
		h[id] = r
	}
}

// corrected returns a time by a clock that is set: one from before that, of this process, is as long
// ago as it is by the monotonic clock. None is in the future.
func corrected(t time.Time, isSet func(time.Time) bool, now time.Time) time.Time {
	if !isSet(t) || t.After(now) {
		return now.Add(-max(now.Sub(t), 0))
	}
	return t
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
	c.history.correct(c.config.ClockSet, now)
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

// date fills in the times of the history. What is in the future while the clock is not set was before
// the agent.
func (c *Collector) date(all []*Entry, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range all {
		r, known := c.history[e.ID]
		if !known {
			r.First = now
		}
		e.FirstSeen, e.LastUsed = notAfter(r.First, now, c.since), notAfter(r.Used, now, c.since)
		if len(e.Users) > 0 {
			e.LastUsed = now
		}
	}
}

// notAfter returns a time, or then if it is after now.
func notAfter(t, now, then time.Time) time.Time {
	if t.After(now) {
		return then
	}
	return t
}
