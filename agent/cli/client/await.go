package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
)

// goal is the state that a request of the owner brings a pod to, and that a command waits for.
type goal struct {
	subject string // the pod, or its container
	late    string // what the error says of a subject that did not reach it in time: "is not stopped"
	// missing returns what a pod lacks, "": nothing. An error is why it never reaches the goal.
	missing func(now *v1.Pod) (string, error)
	gone    error         // of a pod that is gone; nil: it has reached the goal
	timeout time.Duration // for the text only

	waiting  string // printed once the wait lasts, with what is missing; "": nothing
	outlasts string // printed if the agent ends meanwhile; "": that is an error
}

// printAfter is how long a wait continues without output.
const printAfter = 2 * time.Second

// await returns once a pod has reached its goal. out: for messages meanwhile; nil: none.
func (g goal) await(ctx context.Context, p *v1.Pod, here *presence, out io.Writer) error {
	note := func(text string) {
		if text != "" && out != nil {
			fmt.Fprintln(out, "monopod: "+text)
		}
	}
	began, missing := time.Now(), "the agent does not report it"
	waiting, outlasts := g.waiting, g.outlasts
	look := func(ctx context.Context) (string, error) {
		now, err := g.look(ctx, p, here)
		switch {
		case ctx.Err() != nil: // what was missing before is still missing
			return missing, nil
		case notRunning(err) && g.outlasts != "":
			note(outlasts)
			outlasts = ""
			return missing, nil
		case err != nil || now == "":
			return "", err
		}
		missing = now
		if waiting != "" && time.Since(began) > printAfter {
			note(print.JoinWords(waiting, missing))
			waiting = ""
		}
		return missing, nil
	}
	return until(ctx, look, func(missing string) string {
		return fmt.Sprintf("%s %s within %s: %s", g.subject, g.late, g.timeout, missing)
	})
}

// look requests the pod once, and returns what it lacks.
func (g goal) look(ctx context.Context, p *v1.Pod, here *presence) (missing string, err error) {
	now, gone, err := here.look(ctx, p)
	switch {
	case err != nil:
		return "", err
	case gone:
		return "", g.gone
	case now == nil:
		return "the agent does not report it", nil
	}
	return g.missing(now)
}

// bounded bounds a wait; 0: it has no bound.
func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, ErrTimeout)
}

// until calls look repeatedly until nothing is missing, there is an error, or ctx ends. If its
// time is over, the error is an ErrTimeout with late's text on what was missing last.
func until(ctx context.Context, look func(context.Context) (missing string, err error), late func(missing string) string) error {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		missing, err := look(ctx)
		if missing == "" || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return lateOr(ctx, late(missing))
		}
	}
}

// lateOr returns why ctx ended: an ErrTimeout with this text if its time is over.
func lateOr(ctx context.Context, text string) error {
	if errors.Is(context.Cause(ctx), ErrTimeout) {
		return &timeoutError{text}
	}
	return context.Cause(ctx)
}
