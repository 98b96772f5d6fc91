package main

import (
	"fmt"
	"runtime"
)

// hardware is what a machine has beside its disks.
type hardware struct {
	memory  int // MB
	cpus    int
	threads int    // of each core; 0: one
	clock   string // at each boot, as in 1970-01-02; "": the right time
}

var (
	// usual is what most trials run on: with four processors, if this machine has as many.
	usual = hardware{memory: 1024, cpus: min(max(runtime.NumCPU(), 2), 4)}
	// parallel has two cores of two threads each, however many this machine has.
	parallel = hardware{memory: usual.memory, cpus: 4, threads: 2}
	// little is small for a Debian with containerd.
	little = hardware{memory: 256, cpus: 1}
	// recorded is what the recordings of a kubelet were made on: how soon a container is
	// killed when memory is short depends on how much there is.
	recorded = hardware{memory: 3072, cpus: 2}
	// early has a clock without a battery.
	early = hardware{memory: usual.memory, cpus: usual.cpus, clock: "1970-01-02"}
)

// refit turns the machine off and on again with other hardware, unless it has that.
func (b *box) refit(h hardware) error {
	if b.machine.hardware == h {
		return nil
	}
	if err := b.machine.powerOff(b.ctx); err != nil {
		return fmt.Errorf("power off: %w", err)
	}
	b.machine.hardware = h
	return b.machine.boot(b.ctx, bootIn)
}
