package logrotate

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
)

// venomous is a runtime that panics when it is asked about one container.
type venomous struct{ dir string }

func (v venomous) Running(context.Context) ([]Container, error) {
	return []Container{{ID: "bad", Log: filepath.Join(v.dir, "bad")}, {ID: "good", Log: filepath.Join(v.dir, "good")}}, nil
}

func (v venomous) Log(_ context.Context, id string) (string, error) {
	if id == "bad" {
		panic("venom")
	}
	return "", nil // it has ended
}

func (venomous) Reopen(context.Context, string) error { return nil }

func TestAPanicOverOneLogLeavesTheOthers(t *testing.T) {
	r := New(Config{Workers: 1}, venomous{t.TempDir()}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	faults := 0
	r.Fault = func() { faults++ }
	for range 3 {
		r.round(t.Context())
	}
	if faults != 3 || r.known["good"] == nil || r.known["good"].logged != "" || r.known["bad"].logged == "" {
		t.Errorf("%d faults, good %+v, bad %+v", faults, r.known["good"], r.known["bad"])
	}
}
