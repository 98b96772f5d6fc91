package saidonce

import (
	"errors"
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
