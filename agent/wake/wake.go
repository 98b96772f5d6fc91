// Package wake has the slot by which one goroutine wakes another.
package wake

// Slot wakes the goroutine that receives from it. Any number of calls of Wake before that
// goroutine looks count as one, and one during its work makes it look once more: so it
// must receive first, and look at what has changed then.
type Slot chan struct{}

// New returns an empty slot.
func New() Slot { return make(Slot, 1) }

// Wake fills the slot. It never waits. Any goroutine may call it.
func (s Slot) Wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}
