// Package hook runs the lifecycle hooks of containers: what a pod requests right after a container
// has started, and before it is stopped. It also sends signals to them.
package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/clip"
	"monopod/manifests/defaults"
)

// Target is the container whose hook is run.
type Target struct {
	Host  string             // of an httpGet without one: the pod's address; "": it is not known
	Ports []v1.ContainerPort // by which an httpGet may name its port
	// Exec runs a command in the container, at most until ctx ends. Another exit code than 0 is
	// an error.
	Exec func(ctx context.Context, command []string) error
	// Fallback is called when a server that should speak HTTPS answers in plain
	// HTTP; it may be nil.
	Fallback func()
}

// Run runs one hook to its end, or until ctx ends, with which it fails. A hook
// has no timeout of its own.
func Run(ctx context.Context, h *v1.LifecycleHandler, t Target) error {
	return clip.Error(run(ctx, h, t), outputLimit)
}

func run(ctx context.Context, h *v1.LifecycleHandler, t Target) error {
	switch {
	case h.Exec != nil:
		return t.Exec(ctx, h.Exec.Command)
	case h.HTTPGet != nil:
		return get(ctx, h.HTTPGet, t)
	case h.Sleep != nil:
		return sleep(ctx, defaults.Seconds(h.Sleep.Seconds))
	case h.TCPSocket != nil: // in the API for old manifests only (kubelet: the same)
		return errors.New("tcpSocket cannot be run as a hook")
	}
	return errors.New("the hook has no handler")
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sleep for %s: %w", d, context.Cause(ctx))
	}
}

// ExitError is a command that failed. Its output is for the log only: it may contain what a status
// must not.
type ExitError struct {
	Code   int32
	Output string
}

func (e *ExitError) Error() string { return fmt.Sprintf("exec: the command exited with %d", e.Code) }

// outputLimit is how much of a command's output, or of an error, is logged, in bytes.
const outputLimit = 1024

// Output returns the end of a failed command's output.
func Output(err error) string {
	var e *ExitError
	if !errors.As(err, &e) {
		return ""
	}
	return clip.Tail(e.Output, outputLimit)
}
