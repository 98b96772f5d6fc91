package worker

import (
	"context"
	"time"
)

// job is work for a pod in a goroutine of its own, beside the passes of the worker: a call that
// may hang, a hook or a stop that may take a whole grace period.
type job struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	release func()        // of what ctx comes from
	done    chan struct{} // closed when it has ended
	err     error         // written before that
}

func newJob(ctx context.Context, release func()) *job {
	ctx, cancel := context.WithCancelCause(ctx)
	return &job{ctx: ctx, cancel: cancel, release: release, done: make(chan struct{})}
}

// detachedJob returns a job that no update ends, and the agent's end only after LeaveIn.
func (p *pod) detachedJob() *job { return newJob(p.detached()) }

// detached returns a context that only its caller ends, or the agent's end after LeaveIn.
func (p *pod) detached() (context.Context, func()) {
	firm, cancel := context.WithCancelCause(context.WithoutCancel(p.life))
	stop := context.AfterFunc(p.life, func() {
		time.AfterFunc(LeaveIn, func() { cancel(context.Cause(p.life)) })
	})
	return firm, func() { stop(); cancel(nil) }
}

// begin starts the work of a job: do, whose error or panic is the job's result. what is a noun,
// for the log. ended is called after its end. The worker waits for it when the worker ends.
func (p *pod) begin(j *job, what, container string, do func(ctx context.Context) error, ended func()) {
	p.background.Go(func() {
		defer ended()
		defer close(j.done)
		defer j.release()
		defer j.cancel(nil)
		defer p.caught(&j.err, what, container)
		j.err = do(j.ctx)
	})
}

// hasEnded reports whether the work is over.
func (j *job) hasEnded() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}
