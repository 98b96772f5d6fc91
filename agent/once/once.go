// Package once runs a few pods to their end, for a CI job. It decides when the work is done and
// with which exit code, shows what it waits for and what the containers write, and summarizes in
// reports. An agent behind an interface runs the pods.
package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podlog"
	"monopod/agent/print"
	"monopod/agent/status"
)

// Agent runs the pods.
type Agent interface {
	// Run runs them until ctx ends. If Retire was called before, and nothing of any pod is left,
	// nothing is left of the agent either; else its error names the pods of which something is
	// left. Without Retire it leaves everything as it is.
	Run(ctx context.Context) error
	Store() *status.Store
	Retire()                        // makes all pods go, each with its grace period
	Gone() <-chan struct{}          // closed when that has ended
	Kill(ctx context.Context) error // kills what runs at this moment
}

// Config is what to run, and how.
type Config struct {
	Agent   Agent
	Pods    []*v1.Pod // the desired pods, in the order of the manifests; none: the rest of a previous run is removed
	Root    string    // of the agent
	PodLogs string    // the folder of the containers' logs

	Starts    *Starts       // the agent's failed starts; nil: it reports none
	Timeout   time.Duration // from the start to the end of the work; 0: none
	Ready     bool          // the work is done when all pods are ready
	Keep      bool          // leaves the pods when they are
	FailFast  bool          // the first pod that fails ends the work of all
	From      *Chosen       // whose exit code counts; nil: that of the first that failed
	Pipeline  Pipeline      // the CI service that reads Err
	Load      []string      // archives of images that the runtime gets first
	Reports   []Report
	Problems  []string    // why the manifests are refused, a line each; none of a run that starts pods
	Artifacts []*Artifact // copied out when the work is done

	Signals <-chan os.Signal
	Out     io.Writer // what the containers write
	Err     io.Writer // what the run waits for
	Colour  bool      // of the prefixes on Out

	read func(context.Context, string, podlog.Options, func(podlog.Line) error) error // nil: podlog.Read
}

// How long a run tolerates what should not be.
const (
	startPatience   = 10 * time.Second // for a runtime that does not answer, at first
	runtimePatience = 30 * time.Second // and when it did before
	shakyFor        = 3 * time.Second  // for what may change by itself
	stopPatience    = time.Minute      // for a stop, beyond the longest grace period; then it becomes a kill
	killPatience    = 30 * time.Second // for a kill
	killEvery       = 500 * time.Millisecond
	killWithin      = 10 * time.Second // of one round
)

// Run runs the pods to their end and removes them. It returns the exit code; what a person needs
// to know was printed.
func Run(ctx context.Context, c Config) int {
	s := newSession(c)
	life, stop := context.WithCancel(ctx)
	defer stop()
	go func() { s.agentEnd <- c.Agent.Run(life) }()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	s.config.Pipeline.begin(time.Now())
	s.logs = follow(reading, c, s.print, s.print.streams(c.Pods, s.names, c.Colour))
	s.work()
	copied := s.copyArtifacts(ctx)
	kept := s.outcome.End == endReady && c.Keep
	cleared := kept || s.clear(ctx)
	if kept || !cleared { // what keeps running may write for ever
		defer time.AfterFunc(time.Second, stopReading).Stop()
	}
	unread := s.logs.finish()
	s.config.Pipeline.end(time.Now())
	stop()
	if !s.agentDone {
		s.agentErr = <-s.agentEnd
	}
	for _, err := range unread {
		s.progress.print("not all that was written could be read: %v", err)
	}
	return s.conclude(kept, cleared, copied)
}

// copyArtifacts copies what is to outlive the run, until a signal comes, and reports whether
// everything is copied.
func (s *session) copyArtifacts(ctx context.Context) bool {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan bool, 1)
	go func() { done <- s.copyAll(ctx) }()
	for {
		select {
		case good := <-done:
			return good
		case sig := <-s.config.Signals:
			s.repetitions()
			cancel(errors.New(signalOutcome(sig).Text))
			if s.outcome.stopsWhatRuns() {
				s.killBy = signalOutcome(sig).Text
			}
		}
	}
}

func (s *session) copyAll(ctx context.Context) bool {
	good := true
	for _, a := range s.config.Artifacts {
		left, err := a.copy(ctx, s.config.Root)
		if err != nil {
			good = false
			s.progress.print("artifact %s: %v", a.from, err)
			continue
		}
		s.progress.print("artifact %s: copied to %s", a.from, a.to)
		if left.count > 0 {
			s.progress.print("artifact %s: left out what is no file or folder of its own: %s", a.from, print.OneLine(left.String()))
		}
	}
	return good
}

// conclude prints how the run ended, writes the reports, and returns the exit code.
func (s *session) conclude(kept, cleared, copied bool) int {
	if s.agentErr != nil {
		s.progress.print("%v", s.agentErr)
	}
	removed := kept || cleared && s.agentErr == nil
	o := s.outcome.followedBy(copied, removed)
	sum := s.summary(o)
	for k := range sum.Pods {
		s.progress.print("%s", sum.Pods[k].line(s.names.pod(s.final[k].pod)))
	}
	switch s.outcome.End {
	case endSucceeded, endFailed, endReady: // the others were printed when they came
		s.progress.print("%s", cmp.Or(o.Text, "all is removed"))
	}
	if o.Code != 0 {
		s.config.Pipeline.failed(o.Text)
	}
	if kept {
		s.progress.print("the pods keep running, and containers that end are not restarted; %s stops and removes them", Removal(s.config.Root))
	}
	if !removed {
		s.sayLeft()
	}
	return cmp.Or(o.Code, s.report(sum))
}

// sayLeft says how to remove what is left of the run.
func (s *session) sayLeft() {
	_, err := os.Stat(s.config.Root)
	if err == nil {
		s.progress.print("not all could be removed; %s to retry", Removal(s.config.Root))
	}
}

// report writes the reports, and returns the exit code of a run whose work is well: that of a failure if
// one could not be written.
func (s *session) report(sum *Summary) (code int) {
	for _, r := range s.config.Reports {
		err := r.write(sum)
		if err != nil {
			s.progress.print("report: %v", err)
			code = codeFailed
		}
	}
	return code
}

// signalOutcome is that of an interruption.
func signalOutcome(sig os.Signal) *outcome {
	o := &outcome{End: endInterrupted, Code: codeSignal + int(syscall.SIGTERM), Text: "interrupted by " + strings.ToLower(sig.String())}
	if n, ok := sig.(syscall.Signal); ok {
		o.Code, o.Text = codeSignal+int(n), fmt.Sprintf("interrupted by %s", signalName(n))
	}
	return o
}

func signalName(n syscall.Signal) string {
	switch n {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return n.String()
}
