package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	probedPods = 20
	execs      = 200 // bare calls
	ports      = 18080
)

// probes measures what a probe costs the agent: pods have one each second. An exec probe
// is compared with the bare call, whose cost is that of this process.
func (b *bench) probes(ctx context.Context, m *monopod) error {
	const listens = `[sh, -c, "mkdir /www; echo up > /www/index.html; exec httpd -f -p 127.0.0.1:%d -h /www"]`
	http := func(i int) (command, probe string) {
		return fmt.Sprintf(listens, ports+i), fmt.Sprintf("httpGet: {host: 127.0.0.1, port: %d}", ports+i)
	}
	exec := func(int) (command, probe string) { return `[sleep, "3600"]`, `exec: {command: ["true"]}` }
	return errors.Join(
		b.probe(ctx, m, "agent's CPU for an http probe", 1, http, nil),
		b.probe(ctx, m, "agent's CPU for an exec probe", 3, exec, b.bareExecs))
}

// probe runs pods with a probe of one kind. beside, unless it is nil, measures the other
// side while their containers are there.
func (b *bench) probe(ctx context.Context, m *monopod, figure string, goal float64, kind func(i int) (command, probe string),
	beside func(ctx context.Context, figure string, goal float64, container string) error) (err error) {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.agent.Clear(), m.end()) }()
	const prefix = "probe-"
	for i := range probedPods {
		name := fmt.Sprintf("%s%d", prefix, i)
		command, probe := kind(i)
		text := strings.Replace(manifest(name), `    command: [sleep, "3600"]`+"\n",
			fmt.Sprintf("    command: %s\n    readinessProbe: {periodSeconds: 1, %s}\n", command, probe), 1)
		if err := m.agent.Write(name+".yaml", text); err != nil {
			return err
		}
	}
	all, err := b.running(ctx, prefix, probedPods)
	if err != nil {
		return err
	}
	pause(ctx, 5*time.Second) // all are ready: a pod that is not is probed and reported more
	say("%s, for %v", figure, b.opts.idle)
	from, err := cpuTime(m.agent.Pid())
	if err != nil {
		return err
	}
	pause(ctx, b.opts.idle)
	to, err := cpuTime(m.agent.Pid())
	b.sheet.own(figure, "ms", goal, ms(to-from)/(b.opts.idle.Seconds()*probedPods))
	if err == nil && beside != nil {
		err = beside(ctx, figure, goal, all[0].ID)
	}
	return err
}

// bareExecs measures bare calls of the same program.
func (b *bench) bareExecs(ctx context.Context, figure string, goal float64, container string) error {
	from := ownCPU()
	for range execs {
		if _, err := b.rig.CRI.Runtime.ExecSync(ctx, &rt.ExecSyncRequest{ContainerId: container, Cmd: []string{"true"}, Timeout: 10}); err != nil {
			return fmt.Errorf("exec: %w", err)
		}
		pause(ctx, b.opts.idle/execs) // as far apart as probes: a process that never rests is cheaper
	}
	b.sheet.add(figure, "ms", goal, "bare", ms(ownCPU()-from)/execs)
	return nil
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // of the arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
