package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/e2e/rig"
)

// besides is how many pods of a burst crash, each once: a second time they would wait.
const besides = 5

// crashesBeside crashes some of the pods that run, one after the other: what a crash
// costs must not grow with the pods that have nothing to do with it.
func (b *bench) crashesBeside(ctx context.Context, c contender, all []rig.Container) error {
	pause(ctx, 5*time.Second) // the work of the burst is over
	for _, one := range all[:min(besides, len(all))] {
		figure := fmt.Sprintf("crashed container -> successor started, beside %d pods", len(all)-1)
		if err := b.crash(ctx, c, figure, one); err != nil {
			return err
		}
		pause(ctx, 500*time.Millisecond)
	}
	return nil
}

// crash kills a pod's only process and times the start of its successor, by the
// runtime's own clock.
func (b *bench) crash(ctx context.Context, c contender, figure string, old rig.Container) error {
	pid, err := b.rig.CRI.Pid(ctx, old.ID)
	if err != nil {
		return err
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	killed := time.Now()
	if err := errors.Join(p.Kill(), c.restart(ctx, old)); err != nil {
		return err
	}
	var next string
	err = rig.Until(ctx, 30*time.Second, func() (err error) {
		next, err = b.successor(ctx, old)
		return err
	})
	if err != nil {
		return err
	}
	started, err := b.startedAt(ctx, next)
	b.sheet.add(figure, "ms", 1.0, c.name(), ms(started.Sub(killed)))
	return err
}

// successor returns the id of the other container that runs in the sandbox. It asks for
// that sandbox alone: a runtime that is busy with lists is slower.
func (b *bench) successor(ctx context.Context, old rig.Container) (string, error) {
	running := &rt.ContainerStateValue{State: rt.ContainerState_CONTAINER_RUNNING}
	all, err := b.rig.CRI.Runtime.ListContainers(ctx, &rt.ListContainersRequest{
		Filter: &rt.ContainerFilter{PodSandboxId: old.Sandbox, State: running}})
	if err != nil {
		return "", err
	}
	for _, n := range all.Containers {
		if n.Id != old.ID {
			return n.Id, nil
		}
	}
	return "", errors.New("no successor runs")
}
