package saidonce

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestAnErrorIsNewUntilItIsSaid(t *testing.T) {
	var all Errors
	a, b := errors.New("a"), errors.New("b")
	for k, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"x", nil, false}, {"x", a, true}, {"x", a, false}, {"x", errors.New("a"), false},
		{"y", a, true},
		{"x", b, true}, {"x", a, true}, {"x", nil, false}, {"x", a, true},
		{"y", a, false},
	} {
		if got := all.IsNew(row.name, row.err); got != row.want {
			t.Errorf("row %d: %v of %s is new: %v", k, row.err, row.name, got)
		}
	}
	if all.IsNew("x", nil); len(all.said) != 1 {
		t.Errorf("kept %v", all.said)
	}
}

func TestWhatIsNotKeptIsForgotten(t *testing.T) {
	var all Errors
	all.Keep(func(string) bool { return false })
	a := errors.New("a")
	all.IsNew("x", a)
	all.IsNew("y", a)
	all.Keep(func(name string) bool { return name == "x" })
	if all.IsNew("x", a) || !all.IsNew("y", a) {
		t.Errorf("kept %v", all.said)
	}
}

func TestOneCauseIsOneErrorWhateverItIsAbout(t *testing.T) {
	var said Error
	of := func(name string, errno syscall.Errno) error {
		return Cause(fmt.Errorf("remove logs: %w", &fs.PathError{Op: "remove", Path: name, Err: errno}))
	}
	for k, row := range []struct {
		err  error
		want bool
	}{
		{of("a1", syscall.EROFS), true}, {of("b2", syscall.EROFS), false}, {of("b2", syscall.EIO), true},
		{Cause(errors.New("not the kernel's")), true}, {Cause(nil), false}, {of("c3", syscall.EIO), true},
	} {
		if got := said.IsNew(row.err); got != row.want {
			t.Errorf("row %d: %v is new: %v", k, row.err, got)
		}
	}
}
