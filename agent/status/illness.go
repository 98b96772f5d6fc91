package status

import (
	"monopod/agent/panics"
	"monopod/agent/saidonce"
)

// sayIll logs an error unless its cause is known.
func (w *writer) sayIll(err error) {
	w.ill = err
	cause := saidonce.Cause(err).Error()
	if w.said[cause] {
		return
	}
	w.said[cause] = true
	w.log.Warn("status cannot be written; trying again", panics.Logged(err)...)
	w.trouble(err)
}

// sayWell logs once that no file waits for another try any more.
func (w *writer) sayWell() {
	for _, j := range w.jobs {
		if j.fails > 0 {
			return
		}
	}
	w.ill = nil
	if len(w.said) > 0 {
		clear(w.said)
		w.log.Info("status is written again")
	}
}
