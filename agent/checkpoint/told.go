package checkpoint

import (
	"maps"
	"slices"
)

// Told is what a container knows of its config, in the words of objects.Set.EnvOf, beside what it was
// made of.
type Told struct {
	Words string `json:"words,omitempty"` // of what it was told last; "": of nothing
	// MayHave is what it may have read since, as telling it began and has not succeeded.
	MayHave []string `json:"may,omitempty"`
}

// mostMayHave bounds what is recorded of attempts that fail while the config changes on and on.
const mostMayHave = 8

// Trying returns what the container knows once it is attempted to tell it of words.
func (t Told) Trying(words string) Told {
	if slices.Contains(t.MayHave, words) {
		return t
	}
	t.MayHave = append(slices.Clone(t.MayHave), words)
	t.MayHave = t.MayHave[max(0, len(t.MayHave)-mostMayHave):]
	return t
}

// WithTold returns a copy that records what a container was told, and drops such records of
// containers that are gone.
func (c *Checkpoint) WithTold(id string, told Told, has func(id string) bool) *Checkpoint {
	d := *c
	d.Told = maps.Clone(c.Told)
	maps.DeleteFunc(d.Told, func(id string, _ Told) bool { return !has(id) })
	if d.Told == nil {
		d.Told = map[string]Told{}
	}
	d.Told[id] = told
	return &d
}
