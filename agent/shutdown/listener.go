package shutdown

import (
	"sync"

	"github.com/godbus/dbus/v5"

	"monopod/agent/wake"
)

const (
	busName      = "org.freedesktop.DBus"
	ownerChanged = "NameOwnerChanged"
	prepare      = "PrepareForShutdown"
)

// listener is woken by the signals of a connection. Each user of the machine may send the agent a
// signal that looks like one of logind's: a signal counts only if the connection that owns
// logind's name has sent it, and means only that logind must be asked. The connection's reader
// calls it: a signal that does not count costs no more than being read.
type listener struct {
	prepares wake.Slot // a shutdown has started, or was cancelled
	moves    wake.Slot // logind's name has another owner, or none

	mu    sync.Mutex
	owner string // the unique name of the connection that owns logind's name; "": none does
	known bool   // whether the owner is known
}

func newListener() *listener {
	return &listener{prepares: wake.New(), moves: wake.New()}
}

// DeliverSignal handles one signal. It never waits.
func (h *listener) DeliverSignal(_, _ string, s *dbus.Signal) {
	switch {
	case s.Sender == busName && s.Name == busName+"."+ownerChanged:
		h.takeOwner(s.Body)
	case s.Name == loginManager+"."+prepare && s.Sender != "" && s.Sender == h.ownerNow():
		h.prepares.Wake()
	}
}

// takeOwner records the owner of a name from the bus's signal.
func (h *listener) takeOwner(body []any) {
	var name, before, after string
	if err := dbus.Store(body, &name, &before, &after); err != nil || name != loginName {
		return
	}
	h.mu.Lock()
	h.owner, h.known = after, true
	h.mu.Unlock()
	h.moves.Wake()
}

// ownedBy records the owner from the bus's answer to a request. A signal of the bus since the
// request is as new or newer.
func (h *listener) ownedBy(owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known {
		h.owner, h.known = owner, true
	}
}

func (h *listener) ownerNow() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owner
}
