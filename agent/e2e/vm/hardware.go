package main

import "fmt"

// hardware is what a machine has beside its disks.
type hardware struct {
	memory int // MB
	cpus   int
	clock  string // at each boot, as in 1970-01-02; "": the right time
}

// usual is what the trials run on, but for those of other hardware.
var usual = hardware{memory: 1024, cpus: 2}

// on has a trial run on the same machine with other hardware, and the next one on
// the usual.
func on(h hardware, run func(b *box) error) func(b *box) error {
	return func(b *box) error {
		if err := b.refit(h); err != nil {
			return err
		}
		if err := run(b); err != nil {
			return err
		}
		return b.refit(usual)
	}
}

// refit turns the machine off and on again with other hardware.
func (b *box) refit(h hardware) error {
	if err := b.machine.powerOff(b.ctx); err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	b.machine.hardware = h
	return b.machine.boot(b.ctx)
}
