// Package patient makes calls that the kernel may never return from, as those about files of a
// server that is gone.
package patient

import (
	"errors"
	"maps"
	"sync/atomic"
	"time"
)

// Calls makes calls, one at a time for each key. It belongs to one goroutine; a call has one of
// its own, which ends when the kernel lets it: nothing can end it before.
type Calls[T any] struct {
	Most int    // how many may be without an answer at a time; more are not made
	Late func() // an answer has come that nobody waits for any more; any goroutine calls it; may be nil
	open map[string]*call[T]
}

type call[T any] struct {
	answer chan T // has room for the one
	isLate atomic.Bool
}

// Errors of Ask, as the reason why a file cannot be read.
var (
	ErrNoAnswer = errors.New("its file system gives no answer; it is read as soon as there is one")
	ErrTooMany  = errors.New("too many other files have a file system that gives no answer")
)

// Ask returns what do comes to. After a wait without an answer, or once stop is closed, it is
// ErrNoAnswer: then do goes on, and what it comes to is the answer of a later Ask with the key,
// which until then returns ErrNoAnswer at once.
func (c *Calls[T]) Ask(key string, wait time.Duration, stop <-chan struct{}, do func() T) (T, error) {
	if one := c.open[key]; one != nil {
		return c.take(key, one)
	}
	if c.Unanswered() >= c.Most {
		return *new(T), ErrTooMany
	}
	one := c.start(key, do)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case answer := <-one.answer:
		delete(c.open, key)
		return answer, nil
	case <-timer.C:
	case <-stop:
	}
	one.isLate.Store(true)
	return c.take(key, one) // which may have come just now, before it knew that it is late
}

func (c *Calls[T]) start(key string, do func() T) *call[T] {
	if c.open == nil {
		c.open = map[string]*call[T]{}
	}
	one := &call[T]{answer: make(chan T, 1)}
	c.open[key] = one
	go func() {
		one.answer <- do()
		if one.isLate.Load() && c.Late != nil {
			c.Late()
		}
	}()
	return one
}

// take returns the answer if it is there.
func (c *Calls[T]) take(key string, one *call[T]) (T, error) {
	select {
	case answer := <-one.answer:
		delete(c.open, key)
		return answer, nil
	default:
		return *new(T), ErrNoAnswer
	}
}

// Unanswered returns how many calls are under way.
func (c *Calls[T]) Unanswered() (n int) {
	for _, one := range c.open {
		if len(one.answer) == 0 {
			n++
		}
	}
	return n
}

// Keep drops the late answers with other keys than these.
func (c *Calls[T]) Keep(keys map[string]bool) {
	maps.DeleteFunc(c.open, func(key string, one *call[T]) bool { return !keys[key] && len(one.answer) > 0 })
}
