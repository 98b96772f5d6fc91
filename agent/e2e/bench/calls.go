package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"monopod/agent/e2e/rig"
)

// calls times the agent's first call after a file was renamed into place, and counts
// those of a pod's start. A relay stands between the agent and the runtime.
func (b *bench) calls(ctx context.Context, m *monopod) (err error) {
	if err := m.prepare(); err != nil {
		return err
	}
	socket := filepath.Join(m.agent.Dir, "relay.sock")
	r, err := newRelay(socket, b.rig.Runtime.Endpoint)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m.agent.Endpoint = "unix://" + socket
	if err := m.agent.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.agent.Stop()) }()
	const name = "calls0"
	for i := range b.opts.singles {
		say("first call %d", i+1)
		started, err := b.renamed(ctx, m, r, "new file renamed into place -> first runtime call", name, manifest(name))
		if err != nil {
			return err
		}
		if _, err := b.running(ctx, name, 1); err != nil {
			return err
		}
		pause(ctx, time.Second)
		b.sheet.count("runtime calls for a pod's start", "calls", 15, float64(len(r.after(started))))
		changed := strings.Replace(manifest(name), `"3600"`, `"3601"`, 1)
		if _, err := b.renamed(ctx, m, r, "changed file renamed into place -> first runtime call", name, changed); err != nil {
			return err
		}
		if err := errors.Join(m.agent.Clear(), m.forgotten(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// renamed puts a manifest in place and waits for the first call, whatever it is.
func (b *bench) renamed(ctx context.Context, m *monopod, r *relay, figure, name, text string) (time.Time, error) {
	draft := filepath.Join(m.agent.Manifests, "."+name)
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return time.Time{}, err
	}
	pause(ctx, 50*time.Millisecond)
	at := time.Now()
	if err := os.Rename(draft, filepath.Join(m.agent.Manifests, name+".yaml")); err != nil {
		return at, err
	}
	return at, rig.Until(ctx, time.Minute, func() error {
		first := r.after(at)
		if len(first) == 0 {
			return errors.New("the agent has not called the runtime")
		}
		b.sheet.own(figure, "ms", 30, ms(first[0].at.Sub(at)))
		return nil
	})
}

// forgotten waits until the agent has nothing of any pod left.
func (m *monopod) forgotten(ctx context.Context) error {
	return rig.Until(ctx, time.Minute, func() error {
		dirs, err := os.ReadDir(filepath.Join(m.agent.Root, "pods"))
		if len(dirs) > 0 {
			return fmt.Errorf("%s is still there", dirs[0].Name())
		}
		return err
	})
}
