package once

import (
	"errors"
	"io"
	"time"
)

// Unstarted reports a run of which no pod was started, for a reason that ends it with that code, or
// because a signal came first. It returns the exit code, and why.
func Unstarted(c Config, code int, why error) (int, error) {
	o := &outcome{End: endError, Code: code, Text: why.Error()}
	select {
	case sig := <-c.Signals:
		o = signalOutcome(sig)
		o.Text += " before the pods were started"
	default:
	}
	c.Pipeline.failed(o.Text)
	err := errors.New(o.Text)
	s := unstarted(c, o)
	for _, r := range c.Reports {
		if e := r.write(s.summary(o)); e != nil {
			err = errors.Join(err, e)
		}
	}
	return o.Code, err
}

// unstarted is the session of a run of which no pod was started.
func unstarted(c Config, o *outcome) *session {
	now := time.Now()
	s := &session{config: c, outcome: o, began: now, finished: now,
		logs: &follower{streams: newPrinter(io.Discard).streams(c.Pods, namesOf(c.Pods), false)}}
	for _, p := range c.Pods {
		s.final = append(s.final, view{pod: p})
	}
	return s
}
