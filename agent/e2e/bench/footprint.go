package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"monopod/agent/e2e/rig"
)

// footprint is what the agent's process takes at rest with n pods: it is there for all
// the time that nothing happens.
func (b *bench) footprint(ctx context.Context, pid, n int) error {
	say("%d pods at rest for %v", n, b.opts.idle)
	pause(ctx, 15*time.Second) // the work of the start is over
	from, t := used{}, time.Now()
	if err := from.read(pid); err != nil {
		return err
	}
	pause(ctx, b.opts.idle)
	to, seconds := used{}, time.Since(t).Seconds()
	if err := to.read(pid); err != nil {
		return err
	}
	s := b.sheet
	s.own(fmt.Sprintf("idle CPU, %d pods", n), "% of a core", 0.05, 100*(to.cpu-from.cpu).Seconds()/seconds)
	s.own(fmt.Sprintf("written when idle, %d pods", n), "kB per min", 10, (to.written-from.written)/1e3/seconds*60)
	for name, limits := range map[string][3]float64{"RssAnon": {5, 7, 11}, "VmRSS": {17, 20, 26}} {
		kb, err := field(fmt.Sprintf("/proc/%d/status", pid), name)
		if err != nil {
			return err
		}
		limit := limits[2]
		switch {
		case n == 0:
			limit = limits[0]
		case n <= 20:
			limit = limits[1]
		}
		s.own(fmt.Sprintf("%s, %d pods", name, n), "MB", limit, kb/1024)
	}
	did, err := b.counted(ctx, pid, fmt.Sprintf("a minute at rest, %d pods", n), func() error { pause(ctx, time.Minute); return nil })
	if err == nil && did.calls > 0 {
		s.own(fmt.Sprintf("wake-ups when idle, %d pods", n), "per s", 1, did.wakes/did.length.Seconds())
	}
	return err
}

// alone measures an agent without other pods.
func (b *bench) alone(ctx context.Context, m *monopod) (err error) {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.end()) }()
	if err := b.footprint(ctx, m.agent.Pid(), 0); err != nil {
		return err
	}
	return b.work(ctx, m)
}

// used is what a process has used since its start.
type used struct {
	cpu     time.Duration
	written float64
}

func (u *used) read(pid int) (err error) {
	var errs [2]error
	u.cpu, errs[0] = cpuTime(pid)
	u.written, errs[1] = written(pid)
	return errors.Join(errs[:]...)
}

// counted notes the system calls and fsyncs of what do does, unless they cannot be
// counted, which is said.
func (b *bench) counted(ctx context.Context, pid int, what string, do func() error) (traced, error) {
	t, err := trace(ctx, pid, do)
	if errors.Is(err, errNoStrace) {
		say("SKIPPED: system calls of %s are NOT counted: %v", what, err)
		return t, nil
	}
	b.sheet.count("system calls: "+what, "calls", 1500, t.calls)
	b.sheet.count("fsyncs: "+what, "fsyncs", 6, t.syncs)
	return t, err
}

// What a start costs the agent, and a program that makes the same calls and no others. The
// agent writes a checkpoint, reports and cgroups besides.
const (
	startCPU     = "CPU for one pod's start"
	startCPUGoal = 5 // times bare calls
)

// work counts what a start and a removal of one pod cost the agent.
func (b *bench) work(ctx context.Context, m *monopod) error {
	pid, life := m.agent.Pid(), func(prefix string) (err error) {
		if _, _, err = m.start(ctx, prefix, 1); err == nil {
			_, err = b.running(ctx, prefix, 1)
		}
		pause(ctx, 2*time.Second) // its reports are written
		return err
	}
	for i := range 5 {
		from, to := used{}, used{}
		if err := errors.Join(from.read(pid), life(fmt.Sprintf("w%d-", i)), to.read(pid)); err != nil {
			return err
		}
		b.sheet.own(startCPU, "ms", startCPUGoal, ms(to.cpu-from.cpu))
		b.sheet.own("written for a pod's start", "kB", 100, (to.written-from.written)/1e3)
	}
	if _, err := b.counted(ctx, pid, "a pod's start", func() error { return life("traced-") }); err != nil {
		return err
	}
	return errors.Join(m.agent.Clear(), m.forgotten(ctx))
}

// adoption times the start of an agent whose pods all run, until it has reported them.
func (b *bench) adoption(ctx context.Context, m *monopod, prefix string, n int) error {
	before, err := b.running(ctx, prefix, n)
	if err != nil {
		return err
	}
	if err := m.agent.Stop(); err != nil {
		return err
	}
	started := time.Now()
	if err := m.agent.Launch(); err != nil {
		return err
	}
	err = rig.Until(ctx, time.Minute, func() error {
		code, body, err := m.agent.Get(ctx, "/readyz")
		if err == nil && code != 200 {
			err = errors.New(body)
		}
		if err != nil {
			return err
		}
		pods, err := m.agent.Pods(ctx)
		if err == nil && len(pods) < n {
			err = fmt.Errorf("%d pods are reported", len(pods))
		}
		return err
	})
	if err != nil {
		return err
	}
	b.sheet.own(fmt.Sprintf("start of the agent with %d running pods -> all reported", n), "ms", 400, ms(time.Since(started)))
	after, err := b.running(ctx, prefix, n)
	if err != nil {
		return err
	}
	ids := map[string]bool{}
	for _, c := range before {
		ids[c.ID] = true
	}
	for _, c := range after {
		if !ids[c.ID] {
			return fmt.Errorf("the start of the agent touched pod %s", c.Pod)
		}
	}
	return nil
}
