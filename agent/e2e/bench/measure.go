package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"monopod/agent/e2e/rig"
)

// contender runs pods one way. Pods are named by a prefix and a number; each has
// one container that sleeps and ignores SIGTERM.
type contender interface {
	name() string
	// begin makes ready for a number of pods, end is its opposite.
	begin(ctx context.Context) error
	end() error
	// start asks for n pods and returns when that was asked; wait returns
	// when nothing is left to do for it.
	start(ctx context.Context, prefix string, n int) (asked time.Time, wait func() error, err error)
	// stop is the same for their removal.
	stop(ctx context.Context, prefix string, n int) (asked time.Time, wait func() error, err error)
	// restart brings the container of a pod back after it was killed; it returns
	// at once if that happens by itself.
	restart(ctx context.Context, dead rig.Container) error
}

// grace is every pod's terminationGracePeriodSeconds.
const grace = 2

// look is how often a running burst is looked at, for every contender alike.
const look = 10 * time.Millisecond

// measure fills the sheet.
func measure(ctx context.Context, r *rig.Rig, o options, sides []contender, s *sheet) error {
	b := &bench{r, o, s}
	if err := b.singles(ctx, sides); err != nil {
		return err
	}
	if len(sides) > 1 {
		m := sides[1].(*monopod)
		if err := errors.Join(b.calls(ctx, m), b.alone(ctx, m), b.boot(ctx, sides[0], m), b.probes(ctx, m)); err != nil {
			return err
		}
	}
	return b.bursts(ctx, sides)
}

type bench struct {
	rig   *rig.Rig
	opts  options
	sheet *sheet
}

// singles runs one pod after the other, by turns.
func (b *bench) singles(ctx context.Context, sides []contender) error {
	for _, c := range sides {
		if err := c.begin(ctx); err != nil {
			return err
		}
	}
	for i := range max(b.opts.singles, b.opts.crashes) {
		for _, c := range sides {
			say("single pod %d, %s", i+1, c.name())
			if err := b.life(ctx, c, fmt.Sprintf("s%d", i), i); err != nil {
				return fmt.Errorf("single pod, %s: %w", c.name(), err)
			}
		}
	}
	var errs []error
	for _, c := range sides {
		errs = append(errs, c.end())
	}
	return errors.Join(errs...)
}

// life starts, crashes and removes one pod. The starts are timed by the runtime's own clock.
func (b *bench) life(ctx context.Context, c contender, prefix string, i int) error {
	asked, wait, err := c.start(ctx, prefix, 1)
	if err != nil {
		return err
	}
	first, err := b.running(ctx, prefix, 1)
	if err = errors.Join(err, wait()); err != nil {
		return err
	}
	started, err := b.startedAt(ctx, first[0].ID)
	if err != nil {
		return err
	}
	if i < b.opts.singles {
		b.sheet.add("one pod: manifest in place -> container started", "ms", 1.10, c.name(), ms(started.Sub(asked)))
	}
	if i < b.opts.crashes {
		if err := b.crash(ctx, c, "crashed container -> successor started", first[0]); err != nil {
			return err
		}
	}
	if asked, wait, err = c.stop(ctx, prefix, 1); err != nil {
		return err
	}
	gone, err := b.gone(ctx, prefix)
	b.sheet.add("one pod: manifest removed -> container gone", "ms", 1.10, c.name(), ms(gone.Sub(asked)))
	return errors.Join(err, wait(), b.removed(ctx, prefix))
}

// bursts starts and removes many pods at once, by turns.
func (b *bench) bursts(ctx context.Context, sides []contender) error {
	for _, n := range b.opts.sizes {
		for _, c := range sides {
			if err := c.begin(ctx); err != nil {
				return err
			}
		}
		for round := range b.opts.rounds {
			for _, c := range sides {
				say("%d pods at once, round %d, %s", n, round+1, c.name())
				if err := b.burst(ctx, c, fmt.Sprintf("b%d-%d-", n, round), n, round == b.opts.rounds-1); err != nil {
					return fmt.Errorf("%d pods at once, %s: %w", n, c.name(), err)
				}
			}
		}
		for _, c := range sides {
			if err := c.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) burst(ctx context.Context, c contender, prefix string, n int, last bool) error {
	spent := b.spending(c)
	asked, wait, err := c.start(ctx, prefix, n)
	if err != nil {
		return err
	}
	all, err := b.running(ctx, prefix, n)
	b.sheet.add(fmt.Sprintf("%d pods at once: all started", n), "ms", 1.05, c.name(), ms(time.Since(asked)))
	if err = errors.Join(err, wait(), spent(ctx, "agent's CPU for a pod's start", n)); err != nil {
		return err
	}
	if err := b.crashesBeside(ctx, c, all); err != nil {
		return err
	}
	if m, ok := c.(*monopod); ok && last {
		if err := b.footprint(ctx, m.agent.Pid(), n); err != nil {
			return err
		}
		if err := b.adoption(ctx, m, prefix, n); err != nil {
			return err
		}
	}
	spent = b.spending(c)
	if asked, wait, err = c.stop(ctx, prefix, n); err != nil {
		return err
	}
	gone, err := b.gone(ctx, prefix)
	b.sheet.add(fmt.Sprintf("%d pods removed: all containers gone", n), "ms", 1.10, c.name(), ms(gone.Sub(asked)))
	return errors.Join(err, wait(), b.removed(ctx, prefix), spent(ctx, "agent's CPU for a pod's removal", n))
}

// reportsIn is after how long the files of what happened are written.
const reportsIn = 3 * time.Second

// spending returns what notes the CPU time that the agent spends from now on, by pod, until
// all that follows is done.
func (b *bench) spending(c contender) func(ctx context.Context, figure string, n int) error {
	m, ok := c.(*monopod)
	if !ok {
		return func(context.Context, string, int) error { return nil }
	}
	from, err := cpuTime(m.agent.Pid())
	return func(ctx context.Context, figure string, n int) error {
		pause(ctx, reportsIn)
		to, terr := cpuTime(m.agent.Pid())
		b.sheet.own(fmt.Sprintf("%s, %d at once", figure, n), "ms", 5, ms(to-from)/float64(n))
		return errors.Join(err, terr)
	}
}

func (b *bench) containers(ctx context.Context, prefix string) ([]rig.Container, error) {
	all, err := b.rig.CRI.Containers(ctx, namespace)
	var ours []rig.Container
	for _, c := range all {
		if strings.HasPrefix(c.Pod, prefix) {
			ours = append(ours, c)
		}
	}
	return ours, err
}

// running waits until n containers run and returns them.
func (b *bench) running(ctx context.Context, prefix string, n int) ([]rig.Container, error) {
	return b.watch(ctx, prefix, func(run int) bool { return run >= n })
}

// gone waits until none runs and returns when that was seen.
func (b *bench) gone(ctx context.Context, prefix string) (time.Time, error) {
	_, err := b.watch(ctx, prefix, func(run int) bool { return run == 0 })
	return time.Now(), err
}

func (b *bench) watch(ctx context.Context, prefix string, done func(run int) bool) ([]rig.Container, error) {
	for deadline := time.Now().Add(5 * time.Minute); ; pause(ctx, look) {
		all, err := b.containers(ctx, prefix)
		if err != nil {
			return nil, err
		}
		var run []rig.Container
		for _, c := range all {
			if c.State == "Running" {
				run = append(run, c)
			}
		}
		if done(len(run)) {
			return run, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d containers run after 5 minutes", len(run))
		}
	}
}

// removed waits until the pods' sandboxes are removed too: the next measurement
// begins on a quiet runtime.
func (b *bench) removed(ctx context.Context, prefix string) error {
	return rig.Until(ctx, time.Minute, func() error {
		all, err := b.rig.CRI.Sandboxes(ctx, namespace)
		for _, s := range all {
			if strings.HasPrefix(s.Pod, prefix) {
				return fmt.Errorf("sandbox of %s is still there", s.Pod)
			}
		}
		return err
	})
}

func (b *bench) startedAt(ctx context.Context, id string) (time.Time, error) {
	s, err := b.rig.CRI.Status(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, s.StartedAt), nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
