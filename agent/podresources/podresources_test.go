package podresources

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// node has pods, of which each regular container "own" has CPUs for itself.
type node struct {
	pods []*v1.Pod

	mu      sync.Mutex
	counted []string
}

func (n *node) config(path string) Config {
	return Config{
		Path: path,
		Active: func() []*v1.Pod {
			return slices.DeleteFunc(slices.Clone(n.pods), func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
		},
		Pod: func(key string) (*v1.Pod, bool) {
			k := slices.IndexFunc(n.pods, func(p *v1.Pod) bool { return p.Namespace+"/"+p.Name == key })
			if k < 0 {
				return nil, false
			}
			return n.pods[k], true
		},
		CPUs: func(uid, container string) []int {
			if container != "own" {
				return nil
			}
			return []int{len(uid), 9}
		},
		Allocatable: func() []int { return []int{1, 2, 3} },
		Devices: func(p *v1.Pod, container string) map[string][]string {
			if container != "devices" {
				return nil
			}
			return map[string][]string{"example.com/tty": {"/dev/a", "/dev/b"}, "example.com/gpu": {string(p.UID)}}
		},
		AllDevices: func() map[string][]string { return map[string][]string{"example.com/tty": {"/dev/c"}} },
		Count: func(method string, isRefused bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.counted = append(n.counted, fmt.Sprint(method, " ", isRefused))
		},
		Log: slog.New(slog.DiscardHandler),
	}
}

// serve serves until the test ends, and returns a client and what ends the server.
func serve(t *testing.T, c Config) (api.PodResourcesListerClient, func()) {
	t.Helper()
	s, err := Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(end)
	conn, err := grpc.NewClient("unix://"+c.Path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewPodResourcesListerClient(conn), end
}

// pod has containers: "init a", "sidecar b", "app own". The length of its uid is one of its CPUs.
func pod(name, uid string, containers ...string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "ns", name, types.UID(uid)
	always := v1.ContainerRestartPolicyAlways
	for _, text := range containers {
		kind, name, _ := strings.Cut(text, " ")
		switch kind {
		case "init":
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: name})
		case "sidecar":
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: name, RestartPolicy: &always})
		default:
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: name})
		}
	}
	return p
}

// words returns the resources of a pod as "ns/name: container cpus, ...".
func words(p *api.PodResources) string {
	var all []string
	for _, c := range p.Containers {
		all = append(all, fmt.Sprint(c.Name, " ", c.CpuIds))
		if len(c.Devices)+len(c.Memory)+len(c.DynamicResources) > 0 {
			all = append(all, "and more")
		}
	}
	return p.Namespace + "/" + p.Name + ": " + strings.Join(all, ", ")
}

func TestListGivesActivePods(t *testing.T) {
	n := &node{pods: []*v1.Pod{pod("a", "four", "init once", "app own", "app shared", "sidecar own"), pod("b", "five5", "app own"), pod("over", "u", "app own")}}
	n.pods[2].Status.Phase = v1.PodFailed
	client, _ := serve(t, n.config(filepath.Join(t.TempDir(), "d", "s")))
	all, err := client.List(t.Context(), &api.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all.PodResources {
		got = append(got, words(p))
	}
	want := []string{"ns/a: own [4 9], own [4 9], shared []", "ns/b: own [5 9]"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestGetGivesAnyPodByItsWholeName(t *testing.T) {
	n := &node{pods: []*v1.Pod{pod("over", "u", "app own")}}
	n.pods[0].Status.Phase = v1.PodFailed
	client, _ := serve(t, n.config(filepath.Join(t.TempDir(), "s")))
	got, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: "over", PodNamespace: "ns"})
	if err != nil || words(got.PodResources) != "ns/over: own [1 9]" {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: "over", PodNamespace: "other"})
	if s := status.Convert(err); s.Code() != codes.Unknown || s.Message() != "pod over in namespace other not found" {
		t.Errorf("of no pod: %v", err)
	}
}

func TestAllocatableIsWhatContainersCanHave(t *testing.T) {
	client, _ := serve(t, (&node{}).config(filepath.Join(t.TempDir(), "s")))
	got, err := client.GetAllocatableResources(t.Context(), &api.AllocatableResourcesRequest{})
	if err != nil || !slices.Equal(got.CpuIds, []int64{1, 2, 3}) || given(got.Devices) != "example.com/tty [/dev/c]" || len(got.Memory) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// given returns devices in words.
func given(all []*api.ContainerDevices) string {
	var parts []string
	for _, d := range all {
		parts = append(parts, fmt.Sprint(d.ResourceName, " ", d.DeviceIds))
	}
	return strings.Join(parts, ", ")
}

func TestEachDeviceHasAnEntry(t *testing.T) {
	n := &node{pods: []*v1.Pod{pod("a", "u", "app devices", "app shared")}}
	client, _ := serve(t, n.config(filepath.Join(t.TempDir(), "s")))
	got, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: "a", PodNamespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	containers := got.PodResources.Containers
	if has := given(containers[0].Devices); has != "example.com/gpu [u], example.com/tty [/dev/a], example.com/tty [/dev/b]" || len(containers[1].Devices) > 0 {
		t.Errorf("the first has %s, the other %v", has, containers[1].Devices)
	}
}

func TestRequestsAreCountedByMethod(t *testing.T) {
	n := &node{}
	client, end := serve(t, n.config(filepath.Join(t.TempDir(), "s")))
	client.List(t.Context(), &api.ListPodResourcesRequest{})
	client.Get(t.Context(), &api.GetPodResourcesRequest{})
	client.GetAllocatableResources(t.Context(), &api.AllocatableResourcesRequest{})
	end()
	if want := []string{"list false", "get true", "get_allocatable false"}; !slices.Equal(n.counted, want) {
		t.Errorf("counted %q", n.counted)
	}
}

// A client that asks again and again is refused after a kubelet's burst.
func TestTooManyRequestsAreRefused(t *testing.T) {
	client, _ := serve(t, (&node{}).config(filepath.Join(t.TempDir(), "s")))
	refused := false
	for range 500 {
		_, err := client.List(t.Context(), &api.ListPodResourcesRequest{})
		if s := status.Convert(err); err != nil && (s.Code() != codes.ResourceExhausted || s.Message() != "rejected by rate limit") {
			t.Fatal(err)
		}
		refused = refused || err != nil
	}
	if !refused {
		t.Error("500 requests at once are all answered")
	}
}

func TestTheLimitIsAHundredASecondAndTenAtOnce(t *testing.T) {
	l, now := &limit{}, time.Now()
	allowed := func() (n int) {
		for range 1000 {
			if l.allows(now) {
				n++
			}
		}
		return n
	}
	for _, row := range []struct {
		after time.Duration
		want  int
	}{{0, 10}, {0, 0}, {9 * time.Millisecond, 0}, {time.Millisecond, 1}, {50 * time.Millisecond, 5}, {time.Hour, 10}} {
		now = now.Add(row.after)
		if got := allowed(); got != row.want {
			t.Errorf("after %s: %d requests, not %d", row.after, got, row.want)
		}
	}
}

func TestAPanicIsTheErrorOfOneRequest(t *testing.T) {
	c := (&node{}).config(filepath.Join(t.TempDir(), "s"))
	var log strings.Builder
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	c.Active = func() []*v1.Pod { panic("secret") }
	client, end := serve(t, c)
	_, err := client.List(t.Context(), &api.ListPodResourcesRequest{})
	if s := status.Convert(err); s.Code() != codes.Internal || strings.Contains(s.Message(), "secret") {
		t.Errorf("got %v", err)
	}
	if _, err := client.GetAllocatableResources(t.Context(), &api.AllocatableResourcesRequest{}); err != nil {
		t.Errorf("the next one: %v", err)
	}
	end()
	if strings.Count(log.String(), "secret") == 0 {
		t.Errorf("it is logged as %q", log.String())
	}
}

// An agent that was killed leaves its socket, and an older folder may have another mode.
func TestTheSocketIsRootsAloneAndMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	c := (&node{}).config(filepath.Join(dir, "s"))
	stale, err := net.Listen("unix", c.Path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	client, end := serve(t, c)
	for path, want := range map[string]os.FileMode{dir: os.ModeDir | 0o750, c.Path: os.ModeSocket | 0o600} {
		if fi, err := os.Lstat(path); err != nil || fi.Mode() != want {
			t.Errorf("%s: %v, %v", path, fi.Mode(), err)
		}
	}
	if _, err := client.List(t.Context(), &api.ListPodResourcesRequest{}); err != nil {
		t.Error(err)
	}
	end()
	if _, err := os.Lstat(c.Path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestAPathThatCannotBeBoundIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(file, "s"), filepath.Join(t.TempDir(), strings.Repeat("x", 108)), filepath.Join(t.TempDir(), strings.Repeat("x", 256))} {
		s, err := Listen((&node{}).config(path))
		if s != nil || err == nil || !strings.HasPrefix(err.Error(), "listen on "+path+": ") {
			t.Errorf("%v", err)
		}
	}
}

func TestAServerThatEndsByItselfIsAnError(t *testing.T) {
	s, err := Listen((&node{}).config(filepath.Join(t.TempDir(), "s")))
	if err != nil {
		t.Fatal(err)
	}
	s.socket.Close()
	if err := s.Run(t.Context()); err == nil {
		t.Error("it is none")
	}
}

func TestWithoutASocketNothingIsServed(t *testing.T) {
	var none *Server
	if err := none.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// A client has the folder, such as a container with it as a hostPath. What it leaves there keeps no
// agent from listening.
func TestTheSocketReplacesWhatIsThere(t *testing.T) {
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, leave := range map[string]func(path string) error{
		"nothing":                     func(string) error { return nil },
		"a file":                      func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a folder":                    func(path string) error { return os.Mkdir(path, 0o700) },
		"a folder with something":     func(path string) error { return os.MkdirAll(filepath.Join(path, "a", "b"), 0o700) },
		"a link to nothing":           func(path string) error { return os.Symlink("/nowhere", path) },
		"a link to a file":            func(path string) error { return os.Symlink(precious, path) },
		"a link to a folder":          func(path string) error { return os.Symlink(filepath.Dir(precious), path) },
		"a socket that it answers on": func(path string) error { return listens(t, path) },
	} {
		path := filepath.Join(t.TempDir(), "kubelet.sock")
		if err := leave(path); err != nil {
			t.Fatal(err)
		}
		client, end := serve(t, (&node{}).config(path))
		if _, err := client.List(t.Context(), &api.ListPodResourcesRequest{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		end()
		if _, err := os.Lstat(precious); err != nil {
			t.Errorf("%s: a link was followed: %v", name, err)
		}
	}
}

// listens binds a socket until the test ends.
func listens(t *testing.T, path string) error {
	l, err := net.Listen("unix", path)
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return err
}

func TestARequestWithLongHeadersIsRefused(t *testing.T) {
	client, _ := serve(t, (&node{}).config(filepath.Join(t.TempDir(), "s")))
	for size, isRefused := range map[int]bool{maxRequest / 2: false, maxRequest: true, 8 << 20: true} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("x", size))
		if _, err := client.List(ctx, &api.ListPodResourcesRequest{}); (err != nil) != isRefused {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestARequestWithALongNameIsRefused(t *testing.T) {
	n := &node{}
	client, _ := serve(t, n.config(filepath.Join(t.TempDir(), "s")))
	for size, want := range map[int]codes.Code{maxRequest / 2: codes.Unknown, maxRequest + 1: codes.ResourceExhausted, 8 << 20: codes.ResourceExhausted} {
		_, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: strings.Repeat("x", size), PodNamespace: "ns"})
		if got := status.Code(err); got != want || got == codes.ResourceExhausted && !strings.Contains(err.Error(), "larger than max") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// preface is how a client of HTTP/2 begins, with no settings (RFC 9113, 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

func TestAClientIsToldHowManyRequestsItMaySendAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, (&node{}).config(path))
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(preface)); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 9)
	if _, err := io.ReadFull(c, frame); err != nil {
		t.Fatal(err)
	}
	settings := make([]byte, frame[2])
	if _, err := io.ReadFull(c, settings); err != nil {
		t.Fatal(err)
	}
	if streams := []byte{0, 3, 0, 0, 0, maxStreams}; frame[3] != 4 || !bytes.Contains(settings, streams) { // RFC 9113, 6.5
		t.Errorf("the server's settings are %v %v", frame, settings)
	}
}

func TestMoreConnectionsThanTheMaximumWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, (&node{}).config(path))
	var open []net.Conn
	isServed := func(c net.Conn, within time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(within))
		n, _ := c.Read(make([]byte, 9)) // the server's settings
		return n > 0
	}
	for range maxConns + 1 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(preface)); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for k, c := range open[:maxConns] {
		if !isServed(c, 10*time.Second) {
			t.Fatalf("connection %d is not served", k+1)
		}
	}
	last := open[maxConns]
	if isServed(last, 100*time.Millisecond) {
		t.Error("one more is served")
	}
	open[0].Close()
	if !isServed(last, 10*time.Second) {
		t.Error("the last one is not served after another left")
	}
}
