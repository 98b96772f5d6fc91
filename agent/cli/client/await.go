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

// goal is what the owner's request makes of a pod, and is waited for.
type goal struct {
	subject string // the pod, or its container
	late    string // what is said of the subject that has not come to it in time: "is not stopped"
	// missing says what a pod lacks, "": nothing. An error says why it never comes to it.
	missing func(now *v1.Pod) (string, error)
	gone    error         // of a pod that is gone; nil: it has come to it
	timeout time.Duration // for the words alone

	waiting  string // what is said once the wait lasts, with what is missing; "": nothing
	outlasts string // what is said where the agent ends meanwhile; "": that is an error
}

// sayAfter is how long a wait goes on in silence.
const sayAfter = 2 * time.Second

// await returns once a pod has come to its goal. out: what is said meanwhile; nil: nowhere.
func (g goal) await(ctx context.Context, p *v1.Pod, here *presence, out io.Writer) error {
	say := func(text string) {
		if text != "" && out != nil {
			fmt.Fprintln(out, "monopod: "+text)
		}
	}
	began, missing := time.Now(), "the agent does not report it"
	waiting, outlasts := g.waiting, g.outlasts
	look := func(ctx context.Context) (string, error) {
		now, err := g.look(ctx, p, here)
		switch {
		case ctx.Err() != nil: // what was missing before stands
			return missing, nil
		case notRunning(err) && g.outlasts != "":
			say(outlasts)
			outlasts = ""
			return missing, nil
		case err != nil || now == "":
			return "", err
		}
		missing = now
		if waiting != "" && time.Since(began) > sayAfter {
			say(print.JoinWords(waiting, missing))
			waiting = ""
		}
		return missing, nil
	}
	return until(ctx, look, func(missing string) string {
		return fmt.Sprintf("%s %s within %s: %s", g.subject, g.late, g.timeout, missing)
	})
}

// look asks for the pod once, and says what it lacks.
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

// until looks again and again until nothing is missing, there is an error, or ctx ends. Where its
// time is over the error is an ErrTimeout, of late's words for what was missing last.
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

// lateOr is why ctx ended: an ErrTimeout of this text where its time is over.
func lateOr(ctx context.Context, text string) error {
	if errors.Is(context.Cause(ctx), ErrTimeout) {
		return &timeoutError{text}
	}
	return context.Cause(ctx)
}
