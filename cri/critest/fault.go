package critest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Names that On takes in addition to those of methods.
const (
	Any     = "any call"
	Changes = "any call that changes something" // sandboxes, containers or images
)

// Fault is trouble with certain calls. Describe it by chaining, from On, then
// hand it to Runtime.Fault; without Nth or Times it strikes every such call.
type Fault struct {
	method      string
	of          string
	first, last int // of the matching calls, from 1; last 0: no end
	before      func()
	delay       time.Duration
	hang        bool
	err         error
	after       func()
	hangAnswer  bool
	loseAnswer  bool

	struck   chan struct{}
	strike   sync.Once
	released chan struct{}
	release  sync.Once
	seen     int // guarded by Runtime.mu
}

// On describes trouble with a method, such as "StartContainer", with Any or with Changes.
func On(method string) *Fault {
	return &Fault{method: method, first: 1, struck: make(chan struct{}), released: make(chan struct{})}
}

// Of narrows the fault to calls about one pod, container or image: any whole
// part of "namespace/pod/container", or an image's reference.
func (f *Fault) Of(name string) *Fault { f.of = name; return f }

// Nth strikes only the nth matching call, counted from 1.
func (f *Fault) Nth(n int) *Fault { f.first, f.last = n, n; return f }

// Times strikes only the first n matching calls.
func (f *Fault) Times(n int) *Fault { f.first, f.last = 1, n; return f }

// Before runs hook when the call arrives. If it ends the caller's context, the
// call is not carried out.
func (f *Fault) Before(hook func()) *Fault { f.before = hook; return f }

// Delay lets the call wait before it is carried out.
func (f *Fault) Delay(d time.Duration) *Fault { f.delay = d; return f }

// Hang holds the call, not carried out, until its context ends; after Release
// it goes on.
func (f *Fault) Hang() *Fault { f.hang = true; return f }

// Fail refuses the call, which is not carried out.
func (f *Fault) Fail(code codes.Code, text string) *Fault {
	f.err = status.Error(code, text)
	return f
}

// After runs hook when the call was carried out and before it is answered.
func (f *Fault) After(hook func()) *Fault { f.after = hook; return f }

// HangAnswer carries the call out and holds the answer until the call's context
// ends or Release.
func (f *Fault) HangAnswer() *Fault { f.hangAnswer = true; return f }

// LoseAnswer carries the call out and tells the caller that the connection broke.
func (f *Fault) LoseAnswer() *Fault { f.loseAnswer = true; return f }

// Struck is closed when the fault has struck for the first time.
func (f *Fault) Struck() <-chan struct{} { return f.struck }

// Release lets calls that hang or are delayed go on, now and later.
func (f *Fault) Release() { f.release.Do(func() { close(f.released) }) }

// Fault orders a fault. Where several would strike the same call, the one that
// was ordered first does; all of them count the call.
func (r *Runtime) Fault(f *Fault) *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, f)
	return f
}

// ClearFaults forgets all faults and releases what hangs or is delayed.
func (r *Runtime) ClearFaults() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.faults {
		f.Release()
	}
	r.faults = nil
}

// carryOut does a call, through the fault that strikes it.
func (r *Runtime) carryOut(ctx context.Context, method string, request proto.Message, do func() (any, error)) (any, error) {
	f := r.faultOf(method, request)
	if f == nil {
		return do()
	}
	f.strike.Do(func() { close(f.struck) })
	if f.before != nil {
		f.before()
		if err := ctx.Err(); err != nil {
			return nil, status.FromContextError(err).Err()
		}
	}
	if err := f.pause(ctx); err != nil {
		return nil, err
	}
	if f.hang {
		if err := r.hold(ctx, f); err != nil {
			return nil, err
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	response, err := do()
	if f.after != nil {
		f.after()
	}
	if f.hangAnswer {
		if err := r.hold(ctx, f); err != nil {
			return nil, err
		}
	}
	if f.loseAnswer {
		return nil, errCut
	}
	return response, err
}

// pause lasts as long as the fault delays, or until it is released.
func (f *Fault) pause(ctx context.Context) error {
	if f.delay <= 0 {
		return nil
	}
	timer := time.NewTimer(f.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.released:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (r *Runtime) hold(ctx context.Context, f *Fault) error {
	select {
	case <-f.released:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-r.releases:
		return errCut
	}
}

func (r *Runtime) faultOf(method string, request proto.Message) *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found *Fault
	for _, f := range r.faults {
		if !isMethod(f.method, method) || f.of != "" && !isAbout(r.subject(request), f.of) {
			continue
		}
		f.seen++
		if found == nil && f.seen >= f.first && (f.last == 0 || f.seen <= f.last) {
			found = f
		}
	}
	return found
}

// isMethod reports whether which, a method's name or one of Any and Changes, stands for method.
func isMethod(which, method string) bool {
	switch which {
	case Any:
		return true
	case Changes:
		return slices.Contains([]string{
			"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox",
			"CreateContainer", "StartContainer", "StopContainer", "RemoveContainer",
			"UpdateContainerResources", "PullImage", "RemoveImage",
		}, method)
	default:
		return which == method
	}
}

// isAbout: name is the subject, its end, or one part of it.
func isAbout(subject, name string) bool {
	return endsIn(subject, name) || strings.Contains("/"+subject+"/", "/"+name+"/")
}

// subject tells what a request is about: "namespace/pod", "namespace/pod/container",
// an image's reference, or "". r.mu is held.
func (r *Runtime) subject(request proto.Message) string {
	switch q := request.(type) {
	case *rt.RunPodSandboxRequest:
		return podName(q.GetConfig())
	case *rt.CreateContainerRequest:
		return podName(q.GetSandboxConfig()) + "/" + q.GetConfig().GetMetadata().GetName()
	case interface{ GetImage() *rt.ImageSpec }:
		return q.GetImage().GetImage()
	case interface{ GetContainerId() string }:
		if c := r.containers[q.GetContainerId()]; c != nil {
			return c.name()
		}
	case interface{ GetPodSandboxId() string }:
		if s := r.sandboxes[q.GetPodSandboxId()]; s != nil {
			return podName(s.config)
		}
	}
	return ""
}
