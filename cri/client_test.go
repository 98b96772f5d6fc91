package cri_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/cri/critest"
)

// dial returns a client of the runtime behind its socket.
func dial(t *testing.T, r *critest.Runtime) *cri.Client {
	t.Helper()
	c, err := cri.Dial(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func podConfig(name string, labels map[string]string) *rt.PodSandboxConfig {
	return &rt.PodSandboxConfig{
		Metadata: &rt.PodSandboxMetadata{Namespace: "default", Name: name, Uid: "u-" + name},
		Labels:   labels,
	}
}

func containerConfig(name string, labels map[string]string) *rt.ContainerConfig {
	return &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: name}, Image: &rt.ImageSpec{Image: "app"}, Labels: labels}
}

func TestDialTakesUnixSocketsOnly(t *testing.T) {
	for _, row := range []struct {
		endpoint string
		ok       bool
	}{
		{"unix:///run/containerd/containerd.sock", true},
		{"/run/odd name%/containerd.sock", true},
		{"", false},
		{"unix://", false},
		{"unix:///", false},
		{"unix://run/containerd.sock", false},
		{"run/containerd.sock", false},
		{"tcp://127.0.0.1:1", false},
		{"npipe:////./pipe/containerd", false},
	} {
		c, err := cri.Dial(row.endpoint)
		if (err == nil) != row.ok {
			t.Errorf("%q: error %v, want ok %v", row.endpoint, err, row.ok)
		}
		if err == nil {
			c.Close()
		} else if !strings.Contains(err.Error(), "want unix:///path/to/socket") {
			t.Errorf("%q: error %q does not say what is wanted", row.endpoint, err)
		}
	}
}

func TestAPodsLife(t *testing.T) {
	r := critest.Start(t)
	c, ctx := dial(t, r), t.Context()
	if v, err := c.Version(ctx); err != nil || v.RuntimeName != "critest" {
		t.Errorf("version %v, %v", v, err)
	}
	r.SetCondition(rt.NetworkReady, false, "NoCNI", "no network")
	if s, err := c.Status(ctx); err != nil || len(s.Status.Conditions) != 2 || s.Status.Conditions[1].Status {
		t.Errorf("status %v, %v, want no network", s, err)
	}
	image := &rt.ImageSpec{Image: "app"}
	if i, err := c.Image(ctx, image); i != nil || err != nil {
		t.Errorf("absent image: %v, %v, want nil, nil", i, err)
	}
	ref, err := c.PullImage(ctx, image, &rt.AuthConfig{Username: "me"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if i, err := c.Image(ctx, image); err != nil || i.GetId() != ref {
		t.Errorf("pulled image: %v, %v, want %s", i, err, ref)
	}
	pod := podConfig("web", nil)
	sandbox, err := c.RunSandbox(ctx, pod, "runc")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.SandboxStatus(ctx, sandbox); err != nil || s.RuntimeHandler != "runc" {
		t.Errorf("sandbox %v, %v", s, err)
	}
	id, err := c.CreateContainer(ctx, sandbox, containerConfig("main", nil), pod)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name  string
		do    func() error
		state rt.ContainerState
	}{
		{"start", func() error { return c.StartContainer(ctx, id) }, rt.ContainerState_CONTAINER_RUNNING},
		{"stop", func() error { return c.StopContainer(ctx, id, 1500*time.Millisecond) }, rt.ContainerState_CONTAINER_EXITED},
		{"stop again", func() error { return c.StopContainer(ctx, id, -time.Second) }, rt.ContainerState_CONTAINER_EXITED},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if s, err := c.ContainerStatus(ctx, id); err != nil || s.State != step.state {
			t.Errorf("%s: %v, %v, want %s", step.name, s, err, step.state)
		}
	}
	if err := errors.Join(c.RemoveContainer(ctx, id), c.StopSandbox(ctx, sandbox), c.RemoveSandbox(ctx, sandbox)); err != nil {
		t.Error(err)
	}
	if len(r.Sandboxes())+len(r.Containers()) != 0 {
		t.Errorf("left behind:\n%s", r)
	}
	var timeouts []int64
	for _, call := range r.Calls() {
		if q, ok := call.Request.(*rt.StopContainerRequest); ok {
			timeouts = append(timeouts, q.Timeout)
		}
	}
	if !slices.Equal(timeouts, []int64{2, 0}) {
		t.Errorf("graces of %v seconds, want 2 and 0", timeouts)
	}
}

func TestWhatIsGoneIsStoppedAndRemoved(t *testing.T) {
	for name, old := range map[string]bool{"containerd 2": false, "containerd 1.6": true} {
		r := critest.Start(t)
		if old {
			r.LikeContainerd16()
		}
		c, ctx := dial(t, r), t.Context()
		for call, err := range map[string]error{
			"StopContainer":   c.StopContainer(ctx, "gone", time.Second),
			"RemoveContainer": c.RemoveContainer(ctx, "gone"),
			"StopSandbox":     c.StopSandbox(ctx, "gone"),
			"RemoveSandbox":   c.RemoveSandbox(ctx, "gone"),
		} {
			if err != nil {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
	}
}

func TestListsSelectByLabels(t *testing.T) {
	r := critest.Start(t)
	c, ctx := dial(t, r), t.Context()
	r.AddImage("app")
	for _, name := range []string{"a", "b"} {
		labels := map[string]string{"mine": "yes", "name": name}
		pod := podConfig(name, labels)
		sandbox, err := c.RunSandbox(ctx, pod, "")
		if err == nil {
			_, err = c.CreateContainer(ctx, sandbox, containerConfig("main", labels), pod)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		labels map[string]string
		want   int
	}{
		{nil, 2},
		{map[string]string{"mine": "yes"}, 2},
		{map[string]string{"mine": "yes", "name": "b"}, 1},
		{map[string]string{"mine": "no"}, 0},
		{map[string]string{"other": ""}, 0},
	} {
		sandboxes, err := c.Sandboxes(ctx, row.labels)
		if err != nil || len(sandboxes) != row.want {
			t.Errorf("%v: %d sandboxes, %v, want %d", row.labels, len(sandboxes), err, row.want)
		}
		containers, err := c.Containers(ctx, row.labels)
		if err != nil || len(containers) != row.want {
			t.Errorf("%v: %d containers, %v, want %d", row.labels, len(containers), err, row.want)
		}
	}
}

func TestErrorsSayCallObjectAndTheRuntimesWords(t *testing.T) {
	r := critest.Start(t)
	c := dial(t, r)
	r.Fault(critest.On("RunPodSandbox").Fail(codes.Unknown, "failed to setup network: no CNI"))
	_, err := c.RunSandbox(t.Context(), podConfig("web", nil), "")
	if want := "RunPodSandbox default/web: failed to setup network: no CNI"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if status.Code(err) != codes.Unknown {
		t.Errorf("code %s, want Unknown", status.Code(err))
	}
	_, err = c.ContainerStatus(t.Context(), "0123456789abcdef")
	if !cri.NotFound(err) || !strings.HasPrefix(err.Error(), "ContainerStatus 0123456789abc: ") {
		t.Errorf("error %v, want not found", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Sandboxes(ctx, nil); !errors.Is(err, context.Canceled) || cri.Unavailable(err) {
		t.Errorf("error %v, want canceled", err)
	}
}

func TestAHangingCallMeetsItsDeadline(t *testing.T) {
	r := critest.Start(t)
	c := dial(t, r)
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Timeouts.Query = 50 * time.Millisecond
	r.Fault(critest.On("ListContainers").Hang())
	_, err := c.Containers(t.Context(), nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "ListContainers: no answer within ") {
		t.Errorf("error %v, want no answer", err)
	}
	if cri.Unavailable(err) {
		t.Error("a hang passes for a runtime that is down")
	}
}

func TestTheRuntimesOwnTimeoutKeepsItsWords(t *testing.T) {
	r := critest.Start(t)
	r.Fault(critest.On("Status").Fail(codes.DeadlineExceeded, "shim: context deadline exceeded"))
	_, err := dial(t, r).Status(t.Context())
	if err == nil || err.Error() != "Status: shim: context deadline exceeded" {
		t.Errorf("error %v", err)
	}
}

func TestARestartIsFollowed(t *testing.T) {
	r := critest.Start(t)
	c, ctx := dial(t, r), t.Context()
	sandbox, err := c.RunSandbox(ctx, podConfig("web", nil), "")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Events(ctx, "", func(*rt.ContainerEventResponse) {}) }()
	fault := r.Fault(critest.On("PodSandboxStatus").Hang())
	cut := make(chan error, 1)
	go func() { _, err := c.SandboxStatus(ctx, sandbox); cut <- err }()
	<-fault.Struck()
	r.Wait(t, func(r *critest.Runtime) bool { return r.Subscribers() == 1 })
	r.Stop()
	if err := <-ended; !cri.Unavailable(err) {
		t.Errorf("events ended with %v, want unavailable", err)
	}
	if err := <-cut; !cri.Unavailable(err) {
		t.Errorf("a call in flight ended with %v, want unavailable", err)
	}
	for range 3 {
		if _, err := c.Version(ctx); !cri.Unavailable(err) {
			t.Errorf("while it is down: %v, want unavailable", err)
		}
	}
	r.ClearFaults()
	r.Resume()
	began := time.Now()
	for {
		s, err := c.SandboxStatus(ctx, sandbox)
		if err == nil {
			if s.State != rt.PodSandboxState_SANDBOX_READY {
				t.Errorf("sandbox %v, want it as it was", s)
			}
			break
		}
		if !cri.Unavailable(err) || time.Since(began) > 5*time.Second {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
		time.Sleep(5 * time.Millisecond) // between tries
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s to come back", took)
	}
}

func TestARuntimeThatHasJustStartedIsFoundAtOnce(t *testing.T) {
	r := critest.Start(t)
	c := dial(t, r)
	r.Stop()
	for range 60 { // the waits between its tries have grown
		if _, err := c.Version(t.Context()); !cri.Unavailable(err) {
			t.Fatalf("while it is down: %v, want unavailable", err)
		}
		time.Sleep(20 * time.Millisecond) // between tries
	}
	r.Resume()
	c.Reconnect(t.Context())
	if _, err := c.Version(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAReconnectEndsWithItsContext(t *testing.T) {
	r := critest.Start(t)
	c := dial(t, r)
	r.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c.Reconnect(ctx)
	if ctx.Err() == nil {
		t.Error("a runtime that is down was found")
	}
}

func TestQuickRestartsAreFollowedAtOnce(t *testing.T) {
	r := critest.Start(t)
	c := dial(t, r)
	for i := range 5 {
		began := time.Now()
		for {
			_, err := c.Version(t.Context())
			if err == nil {
				break
			}
			if !cri.Unavailable(err) || time.Since(began) > time.Second {
				t.Fatalf("restart %d: after %s: %v", i, time.Since(began), err)
			}
			time.Sleep(time.Millisecond) // between tries
		}
		r.Restart()
	}
}

func TestEventsAcrossTheSocket(t *testing.T) {
	r := critest.Start(t)
	c := dial(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	var seen []rt.ContainerEventType
	ended := make(chan error, 1)
	go func() {
		ended <- c.Events(ctx, "", func(e *rt.ContainerEventResponse) {
			if seen = append(seen, e.ContainerEventType); len(seen) == 4 {
				cancel()
			}
		})
	}()
	r.Wait(t, func(r *critest.Runtime) bool { return r.Subscribers() == 1 })
	id, err := c.RunSandbox(ctx, podConfig("web", nil), "")
	if err == nil {
		err = c.RemoveSandbox(ctx, id)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want canceled", err)
	}
	want := []rt.ContainerEventType{
		rt.ContainerEventType_CONTAINER_CREATED_EVENT, rt.ContainerEventType_CONTAINER_STARTED_EVENT,
		rt.ContainerEventType_CONTAINER_STOPPED_EVENT, rt.ContainerEventType_CONTAINER_DELETED_EVENT,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("events %v, want %v", seen, want)
	}
	r.LikeContainerd16()
	if err := c.Events(t.Context(), "", func(*rt.ContainerEventResponse) {}); !cri.Unimplemented(err) {
		t.Errorf("ended with %v, want unimplemented", err)
	}
}

// A CRI-O that is not told to send events ends the stream at once, without an error. One
// that ends without an error later, or after an event, has ended.
func TestAStreamThatEndsAtOnceIsNone(t *testing.T) {
	r := critest.Start(t)
	r.LikeCRIO()
	if err := dial(t, r).Events(t.Context(), "", func(*rt.ContainerEventResponse) {}); !cri.Unimplemented(err) {
		t.Errorf("ended with %v, want unimplemented", err)
	}
	for _, row := range []struct {
		name   string
		after  time.Duration
		events int
		none   bool
	}{{"at once", 0, 0, true}, {"soon", time.Second, 0, true}, {"late", time.Minute, 0, false}, {"after an event", 0, 1, false}} {
		synctest.Test(t, func(t *testing.T) {
			err := cri.New(ends{row.after, row.events}).Events(t.Context(), "", func(*rt.ContainerEventResponse) {})
			if err == nil || cri.Unimplemented(err) != row.none || errors.Is(err, io.EOF) == row.none {
				t.Errorf("%s: ended with %v", row.name, err)
			}
		})
	}
}

// ends is a connection whose streams have some events and then end without an error.
type ends struct {
	after  time.Duration
	events int
}

func (e ends) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return nil }

func (e ends) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return &endingStream{ends: e}, nil
}

type endingStream struct {
	grpc.ClientStream
	ends
}

func (s *endingStream) SendMsg(any) error { return nil }
func (s *endingStream) CloseSend() error  { return nil }

func (s *endingStream) RecvMsg(any) error {
	if s.events--; s.events >= 0 {
		return nil
	}
	time.Sleep(s.after)
	return io.EOF
}

func TestErrorsAreKnownByCodeAndWords(t *testing.T) {
	const none = "none"
	for _, row := range []struct {
		code codes.Code
		text string
		want string
	}{
		{codes.Unknown, `failed to reserve sandbox name "web_default_u_0": name "web_default_u_0" is reserved for "1f"`, "busy"},
		{codes.Unknown, `failed to reserve container name "main_web": name "main_web" is reserved for "1f"`, "busy"},
		{codes.Unknown, `failed to set removing state for container "1f": container is in starting state, can't be removed`, "busy"},
		{codes.Unknown, `failed to set removing state for container "1f": container is already in removing state`, "busy"},
		{codes.Unknown, `failed to set starting state for container "1f": container is already in starting state`, "busy"},
		{codes.Unknown, `failed to set starting state for container "1f": container is in removing state, can't be started`, "busy"},
		{codes.Unknown, `error reserving ctr name k8s_main_web for id 1f: name is reserved`, "busy"},
		{codes.NotFound, `an error occurred when try to find container "1f": not found`, "notfound"},
		{codes.Unavailable, "connection refused", "unavailable"},
		{codes.Unknown, "server is not initialized yet", "unavailable"},
		{codes.Unimplemented, "unknown method GetContainerEvents", "unimplemented"},
		{codes.Unknown, "no space left on device", none},
		{codes.DeadlineExceeded, "context deadline exceeded", none},
	} {
		r := critest.New(t)
		r.Fault(critest.On("Version").Fail(row.code, row.text))
		_, err := cri.New(r.Conn()).Version(t.Context())
		got := map[string]bool{
			"busy": cri.Busy(err), "notfound": cri.NotFound(err),
			"unavailable": cri.Unavailable(err), "unimplemented": cri.Unimplemented(err),
		}
		for kind, is := range got {
			if is != (kind == row.want) {
				t.Errorf("%s %q: %s is %v", row.code, row.text, kind, is)
			}
		}
	}
	if cri.Busy(nil) || cri.NotFound(nil) || cri.Unavailable(nil) || cri.Unimplemented(nil) {
		t.Error("no error is some error")
	}
}

func TestARuntimeThatIsDownIsToldInPlainWords(t *testing.T) {
	dir := t.TempDir()
	none, stale := filepath.Join(dir, "none"), filepath.Join(dir, "stale")
	l, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	const remedy = "start the container runtime, or give its socket with --runtime-endpoint"
	for _, row := range []struct {
		paths []string
		want  string
	}{
		{[]string{none}, "Version: no runtime answers on " + none + " (no such file or directory): " + remedy},
		{[]string{stale}, "Version: no runtime answers on " + stale + " (connection refused): " + remedy},
		{[]string{none, stale}, "Version: no runtime answers on " + none + " (no such file or directory), " + stale + " (connection refused): " + remedy},
	} {
		c, err := cri.Dial(row.paths...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Version(t.Context()); err == nil || err.Error() != row.want || !cri.Unavailable(err) {
			t.Errorf("%v\nwant %s", err, row.want)
		}
	}
}

// A process that is stopped, or hangs, still has its socket: the kernel accepts connections for it.
func TestARuntimeThatHangsIsToldInPlainWords(t *testing.T) {
	hung := filepath.Join(t.TempDir(), "hung")
	l, err := net.Listen("unix", hung)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := cri.Dial(hung)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := "Version: no runtime answers on " + hung + " (it accepts connections and sends nothing): restart the container runtime, or give another socket with --runtime-endpoint"
	if _, err := c.Version(t.Context()); err == nil || err.Error() != want || !cri.Unavailable(err) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// These are containerd's words of 1.6 and 2.4 for starts whose callers went away or met a deadline,
// for one whose sandbox it did not know the process of, and for one that failed by itself.
func TestAStartThatWasBrokenOffIsToldFromOneThatFailed(t *testing.T) {
	for said, want := range map[string]bool{
		"failed to create containerd task: failed to create shim task: context canceled":                   true,
		"failed to create containerd task: failed to create shim task: context deadline exceeded: unknown": true,
		`failed to start containerd task "920f": context canceled: unknown`:                                true,
		"failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to create new parent process: namespace path: lstat /proc/0/ns/ipc: no such file or directory: unknown": true,
		`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "context canceled": executable file not found in $PATH: unknown`:      false,
		"": false,
	} {
		st := &rt.ContainerStatus{State: rt.ContainerState_CONTAINER_EXITED, Reason: "StartError", ExitCode: 128, Message: said}
		if got := cri.BrokenOff(st); got != want {
			t.Errorf("%q: %v", said, got)
		}
		st.Reason = "Error" // the words are those of a program
		if cri.BrokenOff(st) {
			t.Errorf("%q: a program that ended was broken off", said)
		}
	}
}

// CRI-O says so of a name that it makes something under for a call before, whose caller left.
func TestANameIsNotReservedByOthersWhileTheRuntimeMakesIt(t *testing.T) {
	r := critest.New(t)
	r.Fault(critest.On("RunPodSandbox").Fail(codes.DeadlineExceeded, `a request timed out and is still worked on: pod sandbox name "web" is reserved: name is reserved`))
	_, err := cri.New(r.Conn()).RunSandbox(t.Context(), podConfig("web", nil), "")
	if !cri.Busy(err) || cri.NameReserved(err) {
		t.Errorf("%v: busy %v, reserved %v", err, cri.Busy(err), cri.NameReserved(err))
	}
}
