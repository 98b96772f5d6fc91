package critest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Sandbox is a sandbox at one moment. Its Config is the runtime's own: to be read only.
type Sandbox struct {
	ID, Namespace, Name, UID string
	Attempt                  uint32
	Ready                    bool
	Created                  time.Time
	IP, Handler              string
	Config                   *rt.PodSandboxConfig
}

// Container is a container at one moment. Its Config and Resources are the runtime's
// own: to be read only.
type Container struct {
	ID, Sandbox                string // ids
	Namespace, Pod, UID, Name  string
	Attempt                    uint32
	State                      rt.ContainerState
	Created, Started, Finished time.Time
	ExitCode                   int32
	Reason, Message            string
	Config                     *rt.ContainerConfig
	Resources                  *rt.LinuxContainerResources // as last set
	Reopened                   int                         // how often its log was
}

// Call is one call that arrived. Err is nil until it is Done.
type Call struct {
	Method   string
	Request  proto.Message // nil for a stream
	Response proto.Message // nil for a stream, and where there is an Err
	At       time.Time
	Done     bool
	Err      error
}

// Calls returns all calls so far, in the order of their arrival.
func (r *Runtime) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := make([]Call, len(r.calls))
	for i, c := range r.calls {
		calls[i] = *c
	}
	return calls
}

// Count counts the calls of a method that arrived, those that failed included.
func (r *Runtime) Count(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[method]
}

// Open counts the calls of a method that have not ended; Changes stands for all those
// that change something.
func (r *Runtime) Open(method string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for name, open := range r.open {
		if isMethod(method, name) {
			n += open
		}
	}
	return n
}

// Counts returns how many calls of each method arrived.
func (r *Runtime) Counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

// CountOnly makes the runtime count calls from now on and keep nothing else of them,
// for tests with very many: Calls does not return them.
func (r *Runtime) CountOnly() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countOnly = true
}

// ForgetCalls clears the list of calls and counts from zero.
func (r *Runtime) ForgetCalls() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
	clear(r.counts)
}

func (r *Runtime) began(method string, request proto.Message) *Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[method]++
	r.open[method]++
	r.change()
	call := &Call{Method: method, At: time.Now()}
	if r.countOnly {
		return call
	}
	if request != nil {
		call.Request = proto.Clone(request)
	}
	r.calls = append(r.calls, call)
	return call
}

// ended completes the record and returns err as a gRPC status.
func (r *Runtime) ended(call *Call, response any, err error) error {
	if _, ok := status.FromError(err); !ok {
		err = status.FromContextError(err).Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[call.Method]--
	call.Done, call.Err = true, err
	if m, ok := response.(proto.Message); ok && err == nil && !r.countOnly {
		call.Response = proto.Clone(m)
	}
	r.change()
	return err
}

// Running returns "namespace/pod/container" of each container that runs, sorted.
func (r *Runtime) Running() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, c := range r.containers {
		if c.state == rt.ContainerState_CONTAINER_RUNNING {
			names = append(names, c.name())
		}
	}
	slices.Sort(names)
	return names
}

// Sandboxes returns all sandboxes, oldest first.
func (r *Runtime) Sandboxes() []Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Sandbox
	for _, b := range r.sandboxesInOrder() {
		all = append(all, b.snapshot())
	}
	return all
}

// Containers returns all containers, oldest first.
func (r *Runtime) Containers() []Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Container
	for _, c := range r.containersInOrder() {
		all = append(all, c.snapshot())
	}
	return all
}

// Container returns the newest container of that id or name (as for Exit).
func (r *Runtime) Container(which string) (Container, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.find(which); c != nil {
		return c.snapshot(), true
	}
	return Container{}, false
}

// Sandbox returns the newest sandbox of that id or name (as for KillSandbox).
func (r *Runtime) Sandbox(which string) (Sandbox, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.findSandbox(which); b != nil {
		return b.snapshot(), true
	}
	return Sandbox{}, false
}

// DoubleRunning tells of each pod and each container that, at any time so far,
// was live twice: two sandboxes of one namespace/name, or of one uid, ready or
// with running containers, two running containers of one namespace/pod/container.
func (r *Runtime) DoubleRunning() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.doubles))
}

// Wait returns when cond is true, which it asks after each change; after 10
// seconds it fails the test and says what there is.
func (r *Runtime) Wait(t testing.TB, cond func(r *Runtime) bool) {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if cond(r) {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("critest: waited in vain; there are:\n%s", r)
		}
	}
}

// String lists sandboxes and containers, a line each.
func (r *Runtime) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.describe()
}

// describe: r.mu is held.
func (r *Runtime) describe() string {
	var text strings.Builder
	for _, b := range r.sandboxesInOrder() {
		fmt.Fprintf(&text, "%.13s %s attempt %d %s\n", b.id, podName(b.config), b.config.GetMetadata().GetAttempt(), b.state())
		for _, c := range r.containersOf(b.id) {
			fmt.Fprintf(&text, "  %.13s %s attempt %d %s", c.id, c.config.GetMetadata().GetName(), c.config.GetMetadata().GetAttempt(), c.state)
			if c.state == rt.ContainerState_CONTAINER_EXITED {
				fmt.Fprintf(&text, " %d %s %s", c.exitCode, c.reason, c.message)
			}
			text.WriteByte('\n')
		}
	}
	return text.String()
}

func (b *sandbox) snapshot() Sandbox {
	m := b.config.GetMetadata()
	return Sandbox{
		ID: b.id, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUid(), Attempt: m.GetAttempt(),
		Ready: b.ready, Created: b.created, IP: b.ip, Handler: b.handler, Config: b.config,
	}
}

func (c *container) snapshot() Container {
	p, m := c.sandbox.config.GetMetadata(), c.config.GetMetadata()
	return Container{
		ID: c.id, Sandbox: c.sandbox.id, Namespace: p.GetNamespace(), Pod: p.GetName(), UID: p.GetUid(), Name: m.GetName(),
		Attempt: m.GetAttempt(), State: c.state, Created: c.created, Started: c.started, Finished: c.finished,
		ExitCode: c.exitCode, Reason: c.reason, Message: c.message, Config: c.config,
		Resources: c.resources.GetLinux(), Reopened: c.reopened,
	}
}

// endsIn: name is which, or its last parts are.
func endsIn(name, which string) bool { return strings.HasSuffix("/"+name, "/"+which) }
