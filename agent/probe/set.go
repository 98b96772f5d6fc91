package probe

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"monopod/agent/message"
)

// Target is a running container to probe.
type Target struct {
	ID        string    // of this attempt, in the runtime
	Pod       *v1.Pod   // the container's pod; nil: not needed
	Began     time.Time // when it was started; initial delays count from here
	Host      string    // the pod's address; "": the machine itself
	NoHost    bool      // it is not the machine, and its address is not known
	Container *v1.Container
	About     v1.ObjectReference // the container, in events
	// Machine returns the machine's address, which may change; "": the machine itself. It stands in
	// for Host where the pod has the machine's network; nil: it has its own.
	Machine func() string
	// Adopted: it was started before this agent, which knows of it only what the last agent
	// reported.
	Adopted        bool
	Started, Ready bool // as reported
	// Leaving: its pod is being removed. Only its readiness still matters.
	Leaving bool
}

// Results are a container's latest results.
type Results struct {
	Started bool   // its startup probe has succeeded, or it has none
	Ready   bool   // it is started and its readiness probe succeeds, or it has none
	Failed  Kind   // Startup or Liveness once that has failed often enough; else ""
	Why     string // the message of the failed probe: "Liveness probe failed: ..."
	Text    string // why it is not started or not ready, in the same form; "" if it is

	Failing [3]string // the last message of each probe, while it fails: startup, liveness, readiness
}

// textLimit is how much of an answer is kept for the status, in bytes.
const textLimit = 1 << 10

// reportEvery is how often a text that differs from the reported one is worth a call of Changed:
// some differ each time.
const reportEvery = 10 * time.Second

// Set carries out the probes of one pod's containers. Follow, Results and Close
// are for one goroutine.
type Set struct {
	// Event is called, from any goroutine, for each probe that does not simply succeed, in the
	// kubelet's words; it may be nil. It must be set before Follow.
	Event func(t *Target, reason string, text message.Text)

	// Fault is called, from any goroutine, for a panic in the work on a container's probe, which
	// continues with the next period; it may be nil.
	Fault func(t *Target, err error)

	prober  *Prober
	exec    Exec
	changed func()
	log     *slog.Logger

	ctx   context.Context // ends with Close
	end   context.CancelFunc
	loops sync.WaitGroup

	mu       sync.Mutex // guards what follows
	round    uint64     // counts calls of Follow
	followed map[string]*followed
}

// followed is one attempt of a container; results, reported and round are guarded by the Set's mu.
type followed struct {
	Target
	results    Results
	reported   texts     // the last reported texts
	reportedAt time.Time // and when
	round      uint64    // the last in which it was a target

	ctx   context.Context // of all its probes
	stop  context.CancelFunc
	inUse context.Context // of those that matter while the pod is to run
	spare context.CancelFunc
}

// texts are the texts of results.
type texts struct {
	text    string
	failing [3]string
}

// NewSet returns a Set that follows nothing yet. changed is called, from any
// goroutine, when a result has changed; it must return at once.
func NewSet(p *Prober, exec Exec, changed func(), log *slog.Logger) *Set {
	s := &Set{prober: p, exec: exec, changed: changed, log: log, followed: map[string]*followed{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Follow makes the Set probe these containers and no others. The results of one are kept as long
// as it is among them, also when it gets other probes or its address becomes known; any other change
// of a target, except of Leaving, is ignored.
func (s *Set) Follow(targets []Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	for k := range targets {
		t := &targets[k]
		c := s.followed[t.ID]
		if c != nil && (!sameProbes(c.Container, t.Container) || c.NoHost && !t.NoHost) {
			c.stop()
			t.Started, t.Ready = c.results.Started, c.results.Ready
			c = nil
		}
		if c == nil {
			c = s.begin(t)
		}
		c.round = s.round
		if t.Leaving {
			c.spare()
		}
	}
	for id, c := range s.followed {
		if c.round != s.round {
			c.stop()
			delete(s.followed, id)
		}
	}
}

func sameProbes(a, b *v1.Container) bool {
	return a == b || equality.Semantic.DeepEqual([]*v1.Probe{a.StartupProbe, a.LivenessProbe, a.ReadinessProbe},
		[]*v1.Probe{b.StartupProbe, b.LivenessProbe, b.ReadinessProbe})
}

// begin starts the probes that run first. s.mu is held.
func (s *Set) begin(t *Target) *followed {
	c := &followed{Target: *t}
	c.ctx, c.stop = context.WithCancel(s.ctx)
	c.inUse, c.spare = context.WithCancel(c.ctx)
	s.followed[t.ID] = c
	c.results.Started = t.Container.StartupProbe == nil || t.Started
	if !c.results.Started {
		s.run(c, Startup, t.Adopted)
		return c
	}
	c.results.Ready = t.Container.ReadinessProbe == nil || t.Ready
	s.run(c, Liveness, t.Adopted)
	s.run(c, Readiness, t.Adopted)
	return c
}

// run starts a probe of that kind, if the container has one.
func (s *Set) run(c *followed, kind Kind, spread bool) {
	pr := kind.of(c.Container)
	if pr == nil {
		return
	}
	ctx := c.inUse
	if kind == Readiness {
		ctx = c.ctx
	}
	l := newLoop(s, c, kind, pr, spread)
	s.loops.Go(func() { l.run(ctx) })
}

// Results returns the results of the containers, by id.
func (s *Set) Results() map[string]Results {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.followed) == 0 {
		return nil
	}
	out := make(map[string]Results, len(s.followed))
	for id, c := range s.followed {
		out[id] = c.results
	}
	return out
}

// Close ends all probes and returns when they have ended.
func (s *Set) Close() {
	s.end()
	s.loops.Wait()
}

// note records the result of a loop. counts: it occurred as often in a row as the threshold. It
// reports whether the loop is over.
func (s *Set) note(l *loop, good, counts bool, text string) (over bool) {
	over, report := s.record(l, good, counts, text)
	if report {
		s.changed()
	}
	return over
}

func (s *Set) record(l *loop, good, counts bool, text string) (over, report bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := l.of
	was := c.results
	over = c.take(l.kind, good, counts, text)
	if c.results.Started && !was.Started {
		c.results.Ready = c.Container.ReadinessProbe == nil
		s.run(c, Liveness, false)
		s.run(c, Readiness, false)
	}
	return over, c.news(was)
}

// observe records the result of a probe, unless its container is not followed any
// more: after Follow its results are dropped.
func (s *Set) observe(l *loop, f Finding, took time.Duration) {
	if s.prober.Observe == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[l.of.ID] == l.of {
		s.prober.Observe(&l.of.Target, l.kind, f, took)
	}
}

// take changes the results.
func (c *followed) take(kind Kind, good, counts bool, text string) (over bool) {
	r := &c.results
	r.Failing[kind.index()] = text
	if good {
		r.Failing[kind.index()] = ""
	}
	if kind != Liveness && (!good || counts) {
		r.Text = text
	}
	switch {
	case !counts:
	case kind == Readiness:
		r.Ready = good
	case !good:
		r.Failed, r.Why = kind, text
		return true
	case kind == Startup:
		r.Started = true
		return true
	}
	if r.Ready {
		r.Text = ""
	}
	return false
}

// news reports whether the results changed in a way that must be reported.
func (c *followed) news(was Results) bool {
	now := c.results
	current := texts{now.Text, now.Failing}
	was.Text, now.Text, was.Failing, now.Failing = "", "", [3]string{}, [3]string{}
	if now == was && !isNews(c.reported.failing, current.failing) && (current == c.reported || time.Since(c.reportedAt) < reportEvery) {
		return false
	}
	c.reported, c.reportedAt = current, time.Now()
	return true
}

// isNews reports whether a probe fails whose failure was not reported.
func isNews(reported, failing [3]string) bool {
	for k := range failing {
		if failing[k] != "" && reported[k] == "" {
			return true
		}
	}
	return false
}
