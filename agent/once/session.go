package once

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/print"
	"monopod/manifests/defaults"
)

// session is one run. Its goroutine is the caller's of Run.
type session struct {
	config   Config
	names    names
	progress *progress
	print    *printer
	judge    evaluator
	logs     *follower
	changes  <-chan struct{}

	agentEnd  chan error // takes what the agent's Run returns
	agentDone bool       // it was received
	agentErr  error

	began, finished time.Time
	outcome         *outcome // nil: the work continues
	killBy          string   // the signal that came after it was said that one kills; "": none
	final           []view   // pods as they were then

	wasUp      bool      // the runtime answered once
	down       time.Time // since when it does not; zero: it does
	shaky      string    // the outcome that may change by itself
	shakySince time.Time
}

func newSession(c Config) *session {
	n := namesOf(c.Pods)
	if c.Starts == nil {
		c.Starts = NewStarts()
	}
	return &session{
		config: c, names: n, progress: &progress{out: c.Err, names: n}, print: newPrinter(c.Out),
		judge:   evaluator{names: n, ready: c.Ready, fast: c.FailFast, from: c.From, timed: c.Timeout > 0, starts: c.Starts},
		changes: c.Agent.Store().Changes(), agentEnd: make(chan error, 1), began: time.Now(),
	}
}

// views returns the pods as they are now.
func (s *session) views() []view {
	var out []view
	for _, p := range s.config.Pods {
		v := view{pod: p}
		if now, ok := s.config.Agent.Store().Pod(key(p)); ok {
			v.reported, v.status = now, &now.Status
		}
		out = append(out, v)
	}
	return out
}

// work waits until the outcome of the run is known.
func (s *session) work() {
	if len(s.config.Pods) == 0 {
		s.outcome = &outcome{End: endSucceeded}
		return
	}
	if !s.config.Ready && s.config.From == nil && !slices.ContainsFunc(s.config.Pods, isJob) {
		s.progress.print("no pod here ends by itself: this goes on until --timeout or Ctrl-C; a job needs restartPolicy Never or OnFailure")
	}
	var late <-chan time.Time
	if s.config.Timeout > 0 {
		timer := time.NewTimer(s.config.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	for s.outcome == nil {
		next := s.look(time.Now())
		if s.outcome != nil {
			break
		}
		wake := timerAt(next)
		select {
		case <-s.changes:
		case <-s.config.Starts.changed:
		case <-wake.C:
		case <-late:
			s.outcome = s.late()
		case sig := <-s.config.Signals:
			s.repetitions()
			s.outcome = signalOutcome(sig)
		case s.agentErr = <-s.agentEnd:
			s.agentDone = true
			s.outcome = &outcome{End: endError, Code: codeFailed, Text: "the agent stopped with an error"}
		}
		wake.Stop()
	}
	s.finished, s.final = time.Now(), s.views()
	if s.outcome.stopsWhatRuns() {
		s.progress.print("%s; what runs is stopped, a signal kills it", s.outcome.Text)
	}
}

// oneSignal is how long after a signal others are repetitions of it: timeout(1) sends each to its child
// and to the group that this is in, and so do programs that pass on the Ctrl-C of a terminal.
const oneSignal = 50 * time.Millisecond

// repetitions takes the repetitions of a signal, before anything is done for it or said of it: who has
// read what a second one does, sends another one.
func (s *session) repetitions() {
	for over := time.After(oneSignal); ; {
		select {
		case <-s.config.Signals:
		case <-over:
			return
		}
	}
}

// late is the outcome of a run that takes too long.
func (s *session) late() *outcome {
	o := &outcome{End: endTimeout, Code: codeTimeout, Text: fmt.Sprintf("the work has not ended within %s", s.config.Timeout)}
	if why := unfinished(s.views(), s.config.Ready, s.names, time.Now()); why != "" {
		o.Text += ": " + why
	}
	return o
}

// timerAt returns a timer for a moment; the zero time is far away.
func timerAt(t time.Time) *time.Timer {
	if t.IsZero() {
		return time.NewTimer(time.Hour)
	}
	return time.NewTimer(time.Until(t))
}

// look prints changes and decides. It returns when to look again.
func (s *session) look(now time.Time) (again time.Time) {
	all := s.views()
	again = s.progress.look(all, now)
	sooner := func(t time.Time) {
		if !t.IsZero() && (again.IsZero() || t.Before(again)) {
			again = t
		}
	}
	o := s.judge.look(all)
	switch {
	case o == nil:
		s.shaky = ""
	case !o.Shaky:
		s.outcome = o
		return time.Time{}
	case o.Text != s.shaky:
		s.shaky, s.shakySince = o.Text, now
		sooner(now.Add(shakyFor))
	case now.Sub(s.shakySince) >= shakyFor:
		s.outcome = o
		return time.Time{}
	default:
		sooner(s.shakySince.Add(shakyFor))
	}
	lost, at := s.runtimeLost(now)
	if lost != "" {
		s.outcome = &outcome{End: endError, Code: codeFailed, Text: lost}
	}
	sooner(at)
	return again
}

// runtimeLost returns a text if the runtime has not answered for too long, or else the time when
// that will be so.
func (s *session) runtimeLost(now time.Time) (text string, at time.Time) {
	r := s.config.Agent.Store().Runtime()
	if r.Up {
		s.wasUp, s.down = true, time.Time{}
		return "", time.Time{}
	}
	if s.down.IsZero() {
		s.down = now
	}
	patience := startPatience
	if s.wasUp {
		patience = runtimePatience
	}
	if now.Sub(s.down) < patience {
		return "", s.down.Add(patience)
	}
	return fmt.Sprintf("the runtime at %s has not answered for %s: %s", r.Endpoint, patience, print.OneLine(r.Error)), time.Time{}
}

// clear makes all pods go and waits until nothing of them is left. It reports whether nothing is.
func (s *session) clear(ctx context.Context) bool {
	s.config.Agent.Retire()
	if s.agentDone {
		return false
	}
	if up := s.config.Agent.Store().Runtime().Up; !up && !s.wasUp && len(s.config.Pods) > 0 {
		return true // nothing was made
	}
	var kills sync.WaitGroup
	defer kills.Wait() // runtimes leave things behind if a call is interrupted
	limit := time.NewTimer(longestGrace(s.config.Pods) + stopPatience)
	defer limit.Stop()
	killing, tick := false, time.NewTicker(killEvery)
	defer tick.Stop()
	kill := func(why string) {
		killing = true
		s.progress.print("%s: kills what still runs", why)
		limit.Reset(killPatience)
	}
	if s.killBy != "" {
		kill(s.killBy)
	}
	for busy := make(chan struct{}, 1); ; {
		select {
		case <-s.config.Agent.Gone():
			return true
		case sig := <-s.config.Signals:
			s.repetitions()
			if killing {
				s.progress.print("%s again: gives up", signalOutcome(sig).Text)
				return false
			}
			kill(signalOutcome(sig).Text)
		case <-limit.C:
			if killing {
				s.progress.print("what was killed is not gone after %s", killPatience)
				return false
			}
			kill("the pods do not stop")
		case s.agentErr = <-s.agentEnd:
			s.agentDone = true
			return false
		case now := <-tick.C:
			if lost, _ := s.runtimeLost(now); lost != "" {
				s.progress.print("%s", lost)
				return false
			}
		}
		select {
		case busy <- struct{}{}:
			if !killing {
				<-busy
				continue
			}
			kills.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, killWithin)
				defer cancel()
				_ = s.config.Agent.Kill(ctx) // the next round may find less
				<-busy
			})
		default: // the last round still runs
		}
	}
}

// longestGrace returns how long the slowest pod may take to stop.
func longestGrace(pods []*v1.Pod) time.Duration {
	longest := int64(30)
	for _, p := range pods {
		if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
			longest = max(longest, *g)
		}
	}
	return defaults.Seconds(longest)
}
