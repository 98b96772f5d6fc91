package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// boots is how often a pod is started by an agent that starts.
const boots = 7

// boot times the first container of an agent that finds a manifest when it starts, as
// after a reboot, beside that of bare CRI calls: what is more is the agent's own start.
func (b *bench) boot(ctx context.Context, bare contender, m *monopod) error {
	if err := m.prepare(); err != nil {
		return err
	}
	for i := range boots {
		say("first container %d", i+1)
		prefix := fmt.Sprintf("f%d-", i)
		cpu := ownCPU()
		asked, wait, err := bare.start(ctx, prefix, 1)
		err = errors.Join(err, wait())
		b.sheet.add(startCPU, "ms", startCPUGoal, bare.name(), ms(ownCPU()-cpu))
		floor, err := b.firstAfter(ctx, prefix, asked, err)
		if err != nil {
			return err
		}
		_, wait, err = bare.stop(ctx, prefix, 1)
		if err = errors.Join(err, wait()); err != nil {
			return err
		}
		if _, _, err := m.start(ctx, prefix, 1); err != nil {
			return err
		}
		asked = time.Now()
		took, err := b.firstAfter(ctx, prefix, asked, m.agent.Launch())
		if err = errors.Join(err, m.agent.Clear(), m.end()); err != nil {
			return err
		}
		b.sheet.own("start of the agent -> first container, beyond a bare pod's", "ms", 25, ms(took-floor))
	}
	return nil
}

// firstAfter returns how long after a time the pod's container was started, unless the
// pod could not be asked for.
func (b *bench) firstAfter(ctx context.Context, prefix string, asked time.Time, err error) (time.Duration, error) {
	if err != nil {
		return 0, err
	}
	first, err := b.running(ctx, prefix, 1)
	if err != nil {
		return 0, err
	}
	started, err := b.startedAt(ctx, first[0].ID)
	return started.Sub(asked), err
}
