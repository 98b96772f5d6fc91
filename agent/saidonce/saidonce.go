// Package saidonce remembers errors that were said, so that one that stays is not
// said with each retry.
package saidonce

import (
	"errors"
	"maps"
	"sync"
	"syscall"
)

// Error is the text of the error that was said last, "" if things are well. One
// goroutine at a time may use it.
type Error string

// IsNew remembers an error and reports whether it is another one than before. nil:
// things are well, and whatever comes next is new.
func (e *Error) IsNew(err error) bool {
	before := *e
	*e = ""
	if err != nil {
		*e = Error(err.Error())
	}
	return err != nil && *e != before
}

// Cause returns what the kernel said, if err has it: the text of err may name another
// thing each time, such as a file with a number, while the trouble is one.
func Cause(err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return err
}

// Errors is an Error for each of many things, by name. Any goroutine may use it; the
// zero value has none.
type Errors struct {
	mu   sync.Mutex
	said map[string]Error
}

// IsNew is Error's, for one thing.
func (e *Errors) IsNew(name string, err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.said[name]
	fresh := one.IsNew(err)
	switch {
	case err == nil:
		delete(e.said, name)
	case e.said == nil:
		e.said = map[string]Error{name: one}
	default:
		e.said[name] = one
	}
	return fresh
}

// Keep forgets all things but those that are kept.
func (e *Errors) Keep(isKept func(name string) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.said, func(name string, _ Error) bool { return !isKept(name) })
}
