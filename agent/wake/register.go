package wake

import "sync"

// Register has the slot of each goroutine that works for a name. Any goroutine may use it; the zero
// value is empty.
type Register[Name comparable] struct{ slots sync.Map }

// Add sets the slot of a name. A wake before that is not kept: the goroutine adds its slot first,
// and looks then.
func (r *Register[Name]) Add(name Name, s Slot) { r.slots.Store(name, s) }

// Remove removes the slot of a name, unless another one has taken its place.
func (r *Register[Name]) Remove(name Name, s Slot) { r.slots.CompareAndDelete(name, s) }

// Wake wakes the goroutine of a name, if there is one. It never waits.
func (r *Register[Name]) Wake(name Name) {
	if s, is := r.slots.Load(name); is {
		s.(Slot).Wake()
	}
}
