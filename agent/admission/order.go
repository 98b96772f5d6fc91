package admission

import (
	"slices"
	"strings"
	"time"

	"monopod/agent/message"
	"monopod/manifests"
)

// Decision is what the start order says of one pod.
type Decision struct {
	Held    bool
	Unready []manifests.Key // of the pods that it starts after
	Problem string          // why it may wait forever, in words; "": no reason
}

// decide decides whether a pod is held until others are ready.
func (o *StartOrder) decide(d *Dependent, now time.Time) {
	o.decisions++
	d.Decision = Decision{}
	var unknown, problems []string
	for _, other := range d.after {
		if !o.Desired(other) {
			unknown = append(unknown, o.ShortName(other))
		} else if o.Held(other) == nil && o.Ready(other) {
			continue
		}
		d.Unready = append(d.Unready, other)
	}
	until := d.until()
	d.Decision.Held = d.Held != nil && len(d.Unready) > 0 && (until.IsZero() || now.Before(until))
	if len(unknown) > 0 {
		problems = append(problems, "there is no pod "+strings.Join(unknown, ", "))
	}
	if d.cycle != nil {
		problems = append(problems, "a circle: "+o.join(d.cycle, " starts after "))
	}
	d.Problem = strings.Join(problems, "; ")
}

// long returns the full name of a pod of which a manifest gives the short one.
func (o *StartOrder) long(name manifests.Key) manifests.Key {
	return manifests.Key{Namespace: name.Namespace, Name: name.Name + o.Suffix}
}

// meant returns the pod that a manifest names, by its short or its full name.
func (o *StartOrder) meant(name manifests.Key) manifests.Key {
	if long := o.long(name); o.Desired(long) || !o.Desired(name) {
		return long
	}
	return name
}

// ShortName returns "namespace/name" without the node's suffix.
func (o *StartOrder) ShortName(key manifests.Key) string {
	return key.Namespace + "/" + strings.TrimSuffix(key.Name, o.Suffix)
}

// Wait returns what a held pod waits for, and why that may be forever, in words.
func (o *StartOrder) Wait(d *Dependent) message.Text {
	text := o.Reason(&d.Decision)
	if d.Problem != "" {
		text = message.Of("%s: %s", text, message.Name(d.Problem))
	}
	return text
}

// Reason returns what a pod waits for, in words.
func (o *StartOrder) Reason(v *Decision) message.Text {
	return message.Of("waits for %s to be ready", message.Name(o.join(v.Unready, ", ")))
}

func (o *StartOrder) join(keys []manifests.Key, by string) string {
	names := make([]string, len(keys))
	for k, key := range keys {
		names[k] = o.ShortName(key)
	}
	return strings.Join(names, by)
}

// rewire finds the pods that each changed pod starts after, and if that is new, the
// circles: a pod that comes or goes may be the one that others name.
func (o *StartOrder) rewire() {
	for d := range o.changed {
		after := make([]manifests.Key, len(d.order.After))
		for k, name := range d.order.After {
			after[k] = o.meant(name)
		}
		if !slices.Equal(after, d.after) {
			d.after, o.rewired = after, true
		}
	}
	if !o.rewired {
		return
	}
	o.rewired = false
	circling := o.circling()
	for key, d := range o.dependents {
		var cycle []manifests.Key
		if circling[key] {
			cycle = o.cycleOf(key)
		}
		if !slices.Equal(cycle, d.cycle) {
			d.cycle, o.changed[d] = cycle, true
		}
	}
}

// circling returns the pods that may be on a circle: those that are left when each
// that starts after none that is left has been taken away.
func (o *StartOrder) circling() map[manifests.Key]bool {
	waits := make(map[manifests.Key]int, len(o.dependents)) // for how many that are left
	of := map[manifests.Key][]manifests.Key{}
	var free []manifests.Key
	for key, d := range o.dependents {
		for _, other := range d.after {
			if o.dependents[other] != nil {
				waits[key]++
				of[other] = append(of[other], key)
			}
		}
		if waits[key] == 0 {
			free = append(free, key)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, key := range of[free[0]] {
			if waits[key]--; waits[key] == 0 {
				free = append(free, key)
			}
		}
	}
	left := map[manifests.Key]bool{}
	for key, n := range waits {
		if n > 0 {
			left[key] = true
		}
	}
	return left
}

// cycleOf returns the shortest cycle on which a pod starts after itself, with the pod
// at both ends; nil if there is none.
func (o *StartOrder) cycleOf(key manifests.Key) []manifests.Key {
	from := map[manifests.Key]manifests.Key{} // the pod from which each was first reached
	for next := []manifests.Key{key}; len(next) > 0; next = next[1:] {
		d := o.dependents[next[0]]
		if d == nil {
			continue
		}
		for _, other := range d.after {
			if _, seen := from[other]; !seen {
				from[other] = next[0]
				next = append(next, other)
			}
		}
	}
	at, there := from[key]
	if !there {
		return nil
	}
	cycle := []manifests.Key{key, at}
	for ; at != key; cycle = append(cycle, at) {
		at = from[at]
	}
	slices.Reverse(cycle)
	return cycle
}
