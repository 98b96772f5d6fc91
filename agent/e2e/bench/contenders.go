package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"monopod/agent/e2e/rig"
)

const (
	namespace = "bench"
	par       = 8 // pods that bare CRI starts at the same time; runtimes slow down beyond
)

// bare makes the calls itself.
type bare struct {
	cri  *rig.CRI
	logs string
	pods map[string][]*rig.BarePod // by prefix
}

func newBare(r *rig.Rig) *bare {
	return &bare{r.CRI, filepath.Join(r.Dir, "bare-logs"), map[string][]*rig.BarePod{}}
}

func (b *bare) name() string                { return "bare" }
func (b *bare) begin(context.Context) error { return nil }
func (b *bare) end() error                  { return nil }

func (b *bare) start(ctx context.Context, prefix string, n int) (time.Time, func() error, error) {
	pods := make([]*rig.BarePod, n)
	for i := range pods {
		pods[i] = &rig.BarePod{Namespace: namespace, Name: fmt.Sprintf("%s%d", prefix, i), HostNetwork: true,
			Command: []string{"sleep", "3600"}, Logs: b.logs, Grace: grace}
	}
	b.pods[prefix] = pods
	return b.do(par, n, func(i int) error { return pods[i].Start(ctx, b.cri) })
}

func (b *bare) stop(ctx context.Context, prefix string, n int) (time.Time, func() error, error) {
	pods := b.pods[prefix]
	delete(b.pods, prefix)
	return b.do(n, n, func(i int) error { return pods[i].Stop(ctx, b.cri) }) // they mostly wait
}

// do works in the background while the caller looks on.
func (b *bare) do(par, n int, f func(i int) error) (time.Time, func() error, error) {
	done := make(chan error, 1)
	asked := time.Now()
	go func() { done <- rig.Each(par, n, f) }()
	return asked, func() error { return <-done }, nil
}

// restart asks for the dead container's state until it is exited, then starts the successor.
func (b *bare) restart(ctx context.Context, dead rig.Container) error {
	for ; ; pause(ctx, time.Millisecond) {
		s, err := b.cri.Status(ctx, dead.ID)
		if err != nil {
			return err
		}
		if s.FinishedAt != 0 {
			return b.pod(dead.Sandbox).StartContainer(ctx, b.cri)
		}
	}
}

// pod returns the pod with that sandbox.
func (b *bare) pod(sandbox string) *rig.BarePod {
	for _, pods := range b.pods {
		for _, p := range pods {
			if p.Sandbox == sandbox {
				return p
			}
		}
	}
	return nil
}

// monopod writes manifests and lets the agent do the rest.
type monopod struct {
	rig    *rig.Rig
	binary string
	agent  *rig.Agent
}

func newMonopod(r *rig.Rig, binary string) (*monopod, error) {
	m := &monopod{rig: r, binary: binary}
	return m, m.prepare()
}

func (m *monopod) prepare() (err error) {
	m.agent, err = m.rig.NewAgent(m.binary)
	return err
}

func (m *monopod) name() string { return "monopod" }

// begin starts a fresh agent, so that its memory is that of this number of pods.
func (m *monopod) begin(ctx context.Context) error {
	return errors.Join(m.prepare(), m.agent.Start(ctx))
}

// end stops the agent once it has removed all that its pods had, cgroups too.
func (m *monopod) end() error {
	return errors.Join(m.forgotten(context.Background()), m.agent.Stop())
}

func (m *monopod) start(_ context.Context, prefix string, n int) (time.Time, func() error, error) {
	asked := time.Now()
	for i := range n {
		name := fmt.Sprintf("%s%d", prefix, i)
		if err := m.agent.Write(name+".yaml", manifest(name)); err != nil {
			return asked, nil, err
		}
	}
	return asked, func() error { return nil }, nil
}

func (m *monopod) stop(context.Context, string, int) (time.Time, func() error, error) {
	asked := time.Now()
	return asked, func() error { return nil }, m.agent.Clear()
}

func (m *monopod) restart(context.Context, rig.Container) error { return nil }

func manifest(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: %s
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: %d
  containers:
  - name: main
    image: %s
    imagePullPolicy: IfNotPresent
    command: [sleep, "3600"]
    resources:
      requests: {cpu: 10m, memory: 16Mi}
`, name, namespace, grace, rig.Busybox)
}
