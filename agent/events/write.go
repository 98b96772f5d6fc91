package events

import (
	"context"
	"slices"
	"time"

	"monopod/agent/backoff"
)

// When the file is written.
const (
	gather = time.Second      // new events become one write
	lazily = 30 * time.Second // a repetition of an event can wait
)

// Run writes events to the file until ctx ends, and then ends all watches. It
// may be called once.
func (r *Recorder) Run(ctx context.Context) {
	defer r.endWatches()
	var due, notBefore time.Time // due: when the timer fires; zero: it does not
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	arm := func(wait time.Duration) {
		at := time.Now().Add(wait)
		if at.Before(notBefore) {
			at = notBefore
		}
		if due.IsZero() || at.Before(due) {
			due = at
			timer.Reset(time.Until(at))
		}
	}
	fails := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.fresh:
			arm(gather)
		case <-r.again:
			arm(lazily)
		case <-timer.C:
			due = time.Time{}
			err := r.flush()
			r.logWrite(err, fails)
			if err == nil {
				fails, notBefore = 0, time.Time{}
				continue
			}
			fails++
			notBefore = time.Now().Add(backoff.After(fails))
			arm(0)
		}
	}
}

// logWrite logs that the file cannot be written, and that it can be again. fails is the number of
// failures in a row before.
func (r *Recorder) logWrite(err error, fails int) {
	switch {
	case err != nil && fails == 0:
		r.config.Log.Warn("writing events failed; retrying", "err", err)
	case err == nil && fails > 0:
		r.config.Log.Info("events are written again")
	}
}

// Close writes the pending events, if it can, and ends all watches. Run must have
// returned, or never have been called. Later events are kept in memory only.
func (r *Recorder) Close() {
	r.endWatches()
	if err := r.flush(); err != nil {
		r.config.Log.Warn("the last events were not written", "err", err)
	}
}

// flush updates the file. After a failure the content of the file is unknown, so it is rewritten.
func (r *Recorder) flush() error {
	if r.config.Path == "" {
		return nil
	}
	records := r.dirty(false)
	if len(records) == 0 && r.journal.whole {
		return nil
	}
	if r.journal.whole {
		lines, err := encode(records, r.config.Node)
		if err == nil && r.journal.fits(lines) {
			return r.journal.append(lines)
		}
	}
	lines, err := encode(r.dirty(true), r.config.Node)
	if err != nil {
		return err
	}
	return r.journal.rewrite(lines)
}

// dirty returns the records that the file lacks, or all, the latest last, and marks them as
// written.
func (r *Recorder) dirty(all bool) []record {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []record
	for rec := range r.memory.all() {
		if rec.dirty || all {
			rec.dirty = false
			out = append(out, *rec)
		}
	}
	slices.SortFunc(out, byTurn)
	return out
}
