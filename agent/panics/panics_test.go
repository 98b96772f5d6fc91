package panics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func work(v any) (err error) {
	defer Catch(&err)
	if v != nil {
		panic(v)
	}
	return errors.New("an error of its own")
}

func TestAPanicBecomesTheErrorOfItsWork(t *testing.T) {
	if err := work(nil); err == nil || err.Error() != "an error of its own" || In(err) != nil || len(Logged(err)) != 2 {
		t.Errorf("without a panic: %v", err)
	}
	err := fmt.Errorf("start: %w", work("poison"))
	e := In(err)
	if e == nil || e.Value != "poison" || !strings.Contains(string(e.Stack), "panics.work") {
		t.Fatalf("%v, %+v", err, e)
	}
	if !strings.HasSuffix(err.Error(), "panic: poison") {
		t.Errorf("it says %q", err)
	}
	if l := Logged(err); len(l) != 4 || l[3] != string(e.Stack) {
		t.Errorf("logged as %v", l)
	}
	if err := Contain(func() { panic(errors.New("inner")) }); In(err) == nil {
		t.Errorf("not contained: %v", err)
	}
}
