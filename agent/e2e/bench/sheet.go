package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sheet holds the samples of every figure, in the order of their first sample.
type sheet struct{ rows []*row }

// row is one figure.
type row struct {
	Figure  string    `json:"figure"`
	Unit    string    `json:"unit"`
	Bare    []float64 `json:"bare,omitempty"`
	Monopod []float64 `json:"monopod,omitempty"`
	Count   bool      `json:"count,omitempty"` // it does not depend on how busy the machine is
	Goal    float64   `json:"goal"`            // at most: of the ratio where there is a bare side, else of the median; 0: none
}

func (s *sheet) row(figure, unit string, goal float64) *row {
	for _, r := range s.rows {
		if r.Figure == figure {
			return r
		}
	}
	r := &row{Figure: figure, Unit: unit, Goal: goal}
	s.rows = append(s.rows, r)
	return r
}

// add notes a sample of the bare or the monopod side.
func (s *sheet) add(figure, unit string, goal float64, side string, v float64) {
	r := s.row(figure, unit, goal)
	if side == "bare" {
		r.Bare = append(r.Bare, v)
	} else {
		r.Monopod = append(r.Monopod, v)
	}
}

// own notes a sample of what only the agent has.
func (s *sheet) own(figure, unit string, goal, v float64) {
	s.add(figure, unit, goal, "monopod", v)
}

// count notes a sample of what does not depend on how busy the machine is.
func (s *sheet) count(figure, unit string, goal, v float64) {
	s.own(figure, unit, goal, v)
	s.row(figure, unit, goal).Count = true
}

// size notes the size of the binary.
func (s *sheet) size(binary string) error {
	st, err := os.Stat(binary)
	if err != nil {
		return fmt.Errorf("size of the binary: %w", err)
	}
	s.own("binary, stripped", "MB", 25, float64(st.Size())/1e6)
	return nil
}

// markdown prints the medians as a table.
func (s *sheet) markdown() string {
	var b strings.Builder
	b.WriteString("| figure | bare CRI | monopod | ratio | reach |\n|---|---|---|---|---|\n")
	for _, r := range s.rows {
		bare, mono, ratio, goal := number(r.Bare, r.Unit), number(r.Monopod, r.Unit), "", fmt.Sprintf("≤ %g %s", r.Goal, r.Unit)
		switch {
		case len(r.Bare) > 0 && len(r.Monopod) > 0:
			ratio = fmt.Sprintf("%.2f", median(r.Monopod)/median(r.Bare))
			goal = fmt.Sprintf("≤ %.2f", r.Goal)
		case len(r.Bare) > 0, r.Goal == 0:
			goal = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Figure, bare, mono, ratio, goal)
	}
	return b.String()
}

func (s *sheet) writeJSON(path string) error {
	b, err := json.MarshalIndent(s.rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

func number(samples []float64, unit string) string {
	switch {
	case len(samples) == 0:
		return ""
	case unit == "ms" && median(samples) < 10:
		return fmt.Sprintf("%.1f ms", median(samples))
	case unit == "ms":
		return fmt.Sprintf("%.0f ms", median(samples))
	default:
		return fmt.Sprintf("%.2f %s", median(samples), unit)
	}
}

func median(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// cpuTime returns the CPU time that a process has used, to the nanosecond.
func cpuTime(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED: the id of a process's clock is made of its pid and this
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, fmt.Errorf("CPU time of the agent: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
