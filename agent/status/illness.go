package status

import (
	"monopod/agent/panics"
	"monopod/agent/saidonce"
)

// logIll logs an error unless one of this cause was logged.
func (w *writer) logIll(err error) {
	w.ill = err
	cause := saidonce.Cause(err).Error()
	if w.logged[cause] {
		return
	}
	w.logged[cause] = true
	w.log.Warn("status cannot be written; trying again", panics.Logged(err)...)
	w.trouble(err)
}

// logWell logs once that no file waits for another try any more.
func (w *writer) logWell() {
	for _, j := range w.jobs {
		if j.fails > 0 {
			return
		}
	}
	w.ill = nil
	if len(w.logged) > 0 {
		clear(w.logged)
		w.log.Info("status is written again")
	}
}
