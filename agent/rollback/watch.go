package rollback

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"monopod/agent/update"
	"monopod/manifests"
)

// lookEvery is how often a version is looked at that is watched: time without a runtime
// is not to count.
const lookEvery = time.Second

// watched returns the update of a pod name that is being watched; nil: there is none.
func (b *Book) watched(key manifests.Key) *rollback {
	if r := b.all[key]; r != nil && r.kept && r.tried != nil && r.reason == "" && !r.unwatched {
		return r
	}
	return nil
}

// Saw takes over the health of a version that runs. Look must follow.
func (b *Book) Saw(p *manifests.Pod, h update.Health) {
	if p == nil {
		return
	}
	if r := b.watched(p.Key()); r != nil && r.tried.Digest == p.Digest && r.health != h {
		r.health = h
		b.Wake.Reset(0)
	}
}

// Look goes on with all watches. up: the runtime answers. say returns why a pod is not
// ready. It returns the updates that were found healthy.
func (b *Book) Look(now time.Time, up bool, say func(manifests.Key) string) (healthy []manifests.Key) {
	since := now.Sub(b.looked)
	b.looked = now
	next := time.Time{}
	for key := range b.all {
		r := b.watched(key)
		if r == nil || !r.health.Seen {
			continue
		}
		if !up {
			r.watch.Suspend(since)
			next = now.Add(lookEvery)
			continue
		}
		outcome, why, again := r.watch.Look(b.limits(r.tried), r.health, now)
		switch outcome {
		case update.Healthy:
			b.drop(key)
			healthy = append(healthy, key)
		case update.RollBack:
			r.reason = why
			if say(key) != "" {
				r.reason += ": " + say(key)
			}
			r.kept = false
			b.changed(key)
		default:
			if soon := now.Add(lookEvery); again.IsZero() || soon.Before(again) {
				again = soon
			}
			if next.IsZero() || again.Before(next) {
				next = again
			}
		}
	}
	if !next.IsZero() {
		b.Wake.Reset(next.Sub(now))
	}
	return healthy
}

// Tick has the progress of the watches saved, and tries again what the disk did not take.
// It is called now and then. The time that is left to a version counts from when the next
// agent sees it: for how long no agent was there does not matter.
func (b *Book) Tick() {
	maps.Copy(b.unsaved, b.failed)
	clear(b.failed)
	for key := range b.all {
		if r := b.watched(key); r != nil && !r.watch.Since.IsZero() && r.watch.Ready.IsZero() {
			b.changed(key)
		}
	}
}

// rolledBack returns the update of a pod name that was rolled back, once that is on disk.
func (b *Book) rolledBack(key manifests.Key) *rollback {
	if r := b.all[key]; r != nil && r.tried != nil && r.kept && r.reason != "" {
		return r
	}
	return nil
}

// Told returns what is to be said of a version that came back; "": it did not.
func (b *Book) Told(p *manifests.Pod) string {
	if p == nil {
		return ""
	}
	r := b.rolledBack(p.Key())
	if r == nil || r.pinned.Digest != p.Digest {
		return ""
	}
	return r.line()
}

func (r *rollback) line() string {
	return fmt.Sprintf("update rolled back: %s; the former version is back until the manifest changes", r.what())
}

// what says which version was rolled back and why.
func (r *rollback) what() string {
	var images []string
	for _, c := range r.tried.Spec.Containers {
		images = append(images, c.Image)
	}
	return fmt.Sprintf("version %.8s (%s): %s", r.tried.Digest, strings.Join(images, ", "), r.reason)
}

// Line is a version that was rolled back, or whose record cannot be saved, and what is to be said of it.
type Line struct {
	Pod   *manifests.Pod
	Text  string
	Final bool // it was rolled back, and is not tried again
}

// Lines returns all of these, in the order of their names.
func (b *Book) Lines() []Line {
	var all []Line
	names := slices.SortedFunc(maps.Keys(b.all), func(x, y manifests.Key) int { return strings.Compare(x.String(), y.String()) })
	for _, key := range names {
		if r := b.all[key]; r.tried != nil && r.stuck != "" {
			all = append(all, Line{Pod: r.tried, Text: "update waits: " + r.stuck})
		} else if b.rolledBack(key) != nil {
			all = append(all, Line{Pod: r.tried, Text: r.line(), Final: true})
		}
	}
	return all
}

// event is what is told once of a version that is rolled back.
func (r *rollback) event() string {
	var images []string
	for _, c := range r.pinned.Spec.Containers {
		images = append(images, c.Image)
	}
	return fmt.Sprintf("%s; version %.8s comes back (%s)", r.what(), r.former.Digest, strings.Join(images, ", "))
}
