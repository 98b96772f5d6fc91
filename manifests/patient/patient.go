// Package patient makes calls that the kernel may never return from, such as those about files of a
// server that is gone.
package patient

import (
	"errors"
	"maps"
	"sync/atomic"
	"time"
)

// Calls makes calls, one at a time for each key. It belongs to one goroutine. Each call has a
// goroutine of its own, which lives until the kernel returns: nothing can end it earlier.
type Calls[T any] struct {
	Most int    // limit of calls without an answer; beyond it none is made
	Late func() // called by any goroutine when an answer comes after its Ask has returned; may be nil
	open map[string]*call[T]
}

type call[T any] struct {
	answer chan T // has room for one answer
	isLate atomic.Bool
}

// Errors of Ask, as the reason why a file cannot be read.
var (
	ErrNoAnswer = errors.New("its file system gives no answer; it is read as soon as there is one")
	ErrTooMany  = errors.New("too many other files have a file system that gives no answer")
)

// Ask returns the result of do. If there is none within wait, or once stop is closed, it returns
// ErrNoAnswer: do then continues, and a later Ask with the same key returns its result. Until then
// such an Ask returns ErrNoAnswer at once.
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
	return c.take(key, one) // it may have come just now, too early for the call to see isLate
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

// take returns the answer if it has come.
func (c *Calls[T]) take(key string, one *call[T]) (T, error) {
	select {
	case answer := <-one.answer:
		delete(c.open, key)
		return answer, nil
	default:
		return *new(T), ErrNoAnswer
	}
}

// Unanswered returns the number of calls without an answer.
func (c *Calls[T]) Unanswered() (n int) {
	for _, one := range c.open {
		if len(one.answer) == 0 {
			n++
		}
	}
	return n
}

// Keep drops the late answers to other keys than these.
func (c *Calls[T]) Keep(keys map[string]bool) {
	maps.DeleteFunc(c.open, func(key string, one *call[T]) bool { return !keys[key] && len(one.answer) > 0 })
}
