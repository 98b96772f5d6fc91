// Package shutdown stops the pods in order before the machine goes down.
package shutdown

import (
	"sync/atomic"
	"time"

	"monopod/agent/message"
	"monopod/agent/plan"
	"monopod/agent/wake"
	"monopod/manifests"
)

// The kubelet's texts for a pod that it stops for a shutdown, and for one that comes then.
const (
	ReasonTerminated = "Terminated"
	ReasonRefused    = "NodeShutdown"
	MessageRefused   = "Pod was rejected as the node is shutting down."

	messageTerminated = "Pod was terminated in response to imminent node shutdown."
)

// Reason and texts of the node's events (kubelet: the same).
const (
	ReasonShutdown   = "Shutdown"
	MessageShutdown  = "Shutdown manager detected shutdown event"
	MessageCancelled = "Shutdown manager detected shutdown cancellation"
)

// Sequence is the shutdown of all pods, one wave after the other. The sync loop's goroutine owns
// it; any other may call On.
type Sequence struct {
	Periods []Period
	Final   bool                     // it cannot be cancelled any more
	Orders  chan bool                // to the sync loop: the machine goes down, or the shutdown is cancelled
	Changed func()                   // called when On changes
	Idle    func(manifests.Key) bool // nothing of the pod runs, or is going to
	Timer   *time.Timer              // fires when a wave has had its time: then Next must be called
	Done    wake.Slot                // all pods have stopped, or had their time

	on      atomic.Bool
	groups  []group
	stopped map[manifests.Key]plan.Halt // the pods that are due to stop
	wave    []manifests.Key             // that stops now
	until   time.Time                   // its time, at most
	began   time.Time                   // the first wave; zero: not yet
	over    bool
}

// Default is the periods if none are set, and SIGPWR reports a power failure.
func Default() []Period { return TwoPeriods(30*time.Second, 10*time.Second) }

// New returns a sequence that is off, with the default periods.
func New(idle func(manifests.Key) bool) *Sequence {
	q := &Sequence{Periods: Default(), Idle: idle, Orders: make(chan bool), Changed: func() {}, Timer: time.NewTimer(time.Hour), Done: wake.New()}
	q.Timer.Stop()
	return q
}

// On reports whether the machine is being shut down. Any goroutine may call it.
func (q *Sequence) On() bool { return q != nil && q.on.Load() }

// Begin starts the shutdown of these pods.
func (q *Sequence) Begin(pods []Pod) {
	select { // of a shutdown that was cancelled
	case <-q.Done:
	default:
	}
	q.groups, q.stopped, q.wave, q.began, q.over = groupsOf(pods, q.Periods), map[manifests.Key]plan.Halt{}, nil, time.Time{}, false
	q.on.Store(true)
	q.Changed()
}

// Cancel ends the shutdown. It returns the pods that were stopped.
func (q *Sequence) Cancel() (stopped map[manifests.Key]plan.Halt) {
	q.Timer.Stop()
	q.on.Store(false)
	q.Changed()
	stopped, q.stopped = q.stopped, nil
	return stopped
}

// Repeat signals again that a shutdown is over: a caller that requests one now waits for that, too.
func (q *Sequence) Repeat() {
	if !q.On() || !q.over {
		return
	}
	q.Done.Wake()
}

// HaltOf returns how a pod is halted that is due to stop; ok is false if it is not.
func (q *Sequence) HaltOf(key manifests.Key) (h plan.Halt, ok bool) {
	if q.On() {
		h, ok = q.stopped[key]
	}
	return h, ok
}

// Next returns the pods that are due to stop since the last call. It must be called until there
// are none, each time after these were halted: what is idle already costs no time.
func (q *Sequence) Next(now time.Time) []manifests.Key {
	if !q.On() || q.over || q.waits(now) {
		return nil
	}
	for len(q.groups) > 0 && len(q.groups[0].waves) == 0 {
		q.groups = q.groups[1:]
	}
	if len(q.groups) == 0 {
		q.over = true
		q.Timer.Stop()
		q.Repeat()
		return nil
	}
	g := &q.groups[0]
	if q.began.IsZero() {
		q.began = now
	}
	// Each wave may take its share of what is left: else the one that delays the others would
	// leave nothing to those that they start after.
	left := max(q.began.Add(g.until).Sub(now), 0)
	share := left / time.Duration(len(g.waves))
	q.wave, g.waves = g.waves[0], g.waves[1:]
	q.until = now.Add(share)
	q.Timer.Reset(share)
	for _, key := range q.wave {
		q.stopped[key] = plan.Halt{Waiting: plan.Waiting{Reason: ReasonTerminated, Message: message.Fixed(messageTerminated)}, Terminated: true, Grace: share}
	}
	return q.wave
}

// waits reports whether the wave has time left and needs it.
func (q *Sequence) waits(now time.Time) bool {
	if !now.Before(q.until) {
		return false
	}
	for _, key := range q.wave {
		if !q.Idle(key) {
			return true
		}
	}
	return false
}
