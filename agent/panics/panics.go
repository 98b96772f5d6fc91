// Package panics turns a panic in the work on one thing into that work's error,
// so that everything else goes on.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Error is a panic that was contained.
type Error struct {
	Value any
	Stack []byte // of where it happened
}

func (e *Error) Error() string {
	return fmt.Sprintf("monopod itself went wrong, please report it: panic: %v", e.Value)
}

// New returns the error of a panic that was recovered just now.
func New(recovered any) *Error { return &Error{recovered, debug.Stack()} }

// Catch ends a panic and makes *err say so. It must be deferred itself.
func Catch(err *error) {
	if v := recover(); v != nil {
		*err = New(v)
	}
}

// Contain calls do and returns its panic as an error.
func Contain(do func()) (err error) {
	defer Catch(&err)
	do()
	return nil
}

// In returns the panic that an error comes from, nil if it comes from none.
func In(err error) *Error {
	if err == nil { // which is asked of each piece of work
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Logged returns what a log says of an error: the error, and the stack of the
// panic that it comes from.
func Logged(err error) []any {
	out := []any{"err", err}
	if e := In(err); e != nil {
		out = append(out, "stack", string(e.Stack))
	}
	return out
}
