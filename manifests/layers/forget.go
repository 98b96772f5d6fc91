package layers

import (
	"context"
	"errors"
	"time"

	"monopod/manifests"
)

// request is what another goroutine wants done in the one of Run.
type request struct {
	do     func() error
	answer chan error // has room for one answer
}

// Forget is Forget of the folders that keep a pod which none of their manifests gives, the highest
// first; what is below it, if a manifest gives that, takes its place.
func (l *Layers) Forget(ctx context.Context, key manifests.Key) error {
	return l.ask(ctx, func() error {
		return l.forget(key.String(), func(one *layer) error { return one.Forget(ctx, key) })
	})
}

// ForgetObject is Forget for a ConfigMap or Secret.
func (l *Layers) ForgetObject(ctx context.Context, key manifests.ObjectKey) error {
	return l.ask(ctx, func() error {
		return l.forget(key.String(), func(one *layer) error { return one.ForgetObject(ctx, key) })
	})
}

func (l *Layers) ask(ctx context.Context, do func() error) error {
	r := request{do, make(chan error, 1)}
	select {
	case l.requests <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-r.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// forget has folders forget a name, and forgets of those that were not read that they gave it. It
// returns once that is saved and in the snapshot.
func (l *Layers) forget(name string, forget func(*layer) error) error {
	l.take()
	done := false
	for k := len(l.all) - 1; k >= 0; k-- {
		err := forget(l.all[k])
		if errors.Is(err, manifests.ErrUnknown) && l.isUnread(l.all[k], name) {
			l.all[k].gave[name] = true // and does not any more
			err = nil
		}
		wanted := (*manifests.WantedError)(nil)
		switch {
		case errors.Is(err, manifests.ErrUnknown), done && errors.As(err, &wanted):
			continue
		case err != nil:
			return err
		}
		done = true
	}
	if !done {
		return manifests.ErrUnknown
	}
	l.turn(time.Now())
	return l.failed
}
