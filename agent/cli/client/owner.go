package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/cli/print"
	"monopod/agent/status"
)

// OwnerOptions says which pods are stopped, started, held or released.
type OwnerOptions struct {
	Socket  string
	Choice  Choice
	Node    bool // the whole node is held or released
	Query   url.Values
	NoWait  bool
	Timeout time.Duration // of the wait; 0: none
	Out     io.Writer
}

// Stop stops pods and waits until nothing of them runs.
func Stop(ctx context.Context, o OwnerOptions) error {
	return o.do(ctx, "stop", "stopped", func(p *v1.Pod) bool {
		return p.Status.Reason == status.ReasonStopped && p.Status.Phase == v1.PodPending
	})
}

// Start starts stopped pods and waits until they run.
func Start(ctx context.Context, o OwnerOptions) error {
	return o.do(ctx, "start", "started", func(p *v1.Pod) bool {
		return p.Status.Reason != status.ReasonStopped && p.Status.Phase != v1.PodPending && !strings.HasPrefix(p.Status.Message, "Pod was rejected")
	})
}

// Hold holds pods or the node.
func Hold(ctx context.Context, o OwnerOptions) error { return o.do(ctx, "hold", "held", nil) }

// Release ends holds.
func Release(ctx context.Context, o OwnerOptions) error { return o.do(ctx, "release", "released", nil) }

// do asks for it, of one pod after the other. until says of a pod that it is done; nil: it
// is as soon as it is recorded.
func (o OwnerOptions) do(ctx context.Context, path, done string, until func(*v1.Pod) bool) error {
	var list v1.PodList
	if err := GetJSON(ctx, o.Socket, "/pods", &list); notRunning(err) {
		return fmt.Errorf("%w, and nothing is %s: %w", ErrDown, done, err)
	} else if err != nil {
		return err
	}
	if o.Node {
		if _, err := post(ctx, askRestartTimeout, o.Socket, o.path(path)); err != nil {
			return err
		}
		_, err := fmt.Fprintf(o.Out, "the node is %s\n", done)
		return err
	}
	pods, err := o.Choice.Of(list.Items)
	if err != nil {
		return err
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, ErrTimeout)
		defer cancel()
	}
	for k := range pods {
		p := &pods[k]
		if _, err := post(ctx, askRestartTimeout, o.Socket, o.path(path+"/"+p.Namespace+"/"+p.Name)); err != nil {
			return err
		}
	}
	for k := range pods {
		p := &pods[k]
		if until != nil && !o.NoWait {
			if err := o.await(ctx, p, done, until); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(o.Out, "pod %s/%s is %s\n", p.Namespace, print.ShortName(p), o.said(done, until)); err != nil {
			return err
		}
	}
	return nil
}

// said is what a pod is once the agent has recorded it, or once it is done.
func (o OwnerOptions) said(done string, until func(*v1.Pod) bool) string {
	if until != nil && o.NoWait {
		return "being " + done
	}
	return done
}

func (o OwnerOptions) path(path string) string {
	if len(o.Query) > 0 {
		path += "?" + o.Query.Encode()
	}
	return "/" + path
}

// await returns when a pod has come to it, or has ended.
func (o OwnerOptions) await(ctx context.Context, p *v1.Pod, done string, until func(*v1.Pod) bool) error {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		var list v1.PodList
		if err := GetJSON(ctx, o.Socket, "/pods", &list); err != nil && ctx.Err() == nil {
			return err
		}
		words := "the agent does not report it"
		for k := range list.Items {
			now := &list.Items[k]
			if now.Namespace != p.Namespace || now.Name != p.Name {
				continue
			}
			if until(now) || now.Status.Phase == v1.PodSucceeded || now.Status.Phase == v1.PodFailed && len(now.Status.Conditions) > 0 {
				return nil
			}
			words = strings.Join(print.PodWords([]v1.Pod{*now}), "; ")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrTimeout) {
				return &timeoutError{fmt.Sprintf("pod %s/%s is not %s within %s: %s", p.Namespace, print.ShortName(p), done, o.Timeout, words)}
			}
			return context.Cause(ctx)
		}
	}
}
