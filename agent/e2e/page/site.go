//go:build e2e

package page

import (
	"context"
	"embed"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"sigs.k8s.io/yaml"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/server"
	"monopod/agent/status"
	"monopod/manifests/decode"
	"monopod/manifests/poduid"
)

//go:embed testdata/*.yaml
var files embed.FS

// site is an endpoint with what it reports.
type site struct {
	store *status.Store
	tcp   string // address of its pages
	root  string // address that leads to its socket
	dir   string // of the manifests
	leave func() // ends it
}

// serve serves an endpoint for the length of a test.
func serve(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	store, err := status.Open(filepath.Join(dir, "status"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	record := events.Open(events.Config{Node: "edge-7", Log: log})
	socket := filepath.Join(dir, "socket")
	s := &site{store: store, dir: filepath.Join(dir, "manifests")}
	mqtt := v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "mqtt-edge-7", UID: "mqtt", FieldPath: "spec.containers{broker}"}
	record.Record(mqtt, v1.EventTypeNormal, "Pulled", message.Fixed("Container image is already present"))
	record.Record(mqtt, v1.EventTypeWarning, "BackOff", message.Fixed("Back-off restarting failed container"))
	e, err := server.Listen(server.Config{Listen: "127.0.0.1:0", Socket: socket, Store: store, Events: record, Version: "v1.0.0", Log: log, PodLogs: filepath.Join(dir, "logs"),
		Trends: func() map[string]status.Trend { return trends(store) },
		Usage: func(context.Context) (*statsapi.NodeStats, error) {
			return &statsapi.NodeStats{NodeName: "edge-7", CPU: &statsapi.CPUStats{UsageNanoCores: new(uint64(420e6))}, Memory: &statsapi.MemoryStats{WorkingSetBytes: new(uint64(2 << 30))},
				Fs: &statsapi.FsStats{CapacityBytes: new(uint64(64e9)), AvailableBytes: new(uint64(40e9)), InodesFree: new(uint64(3_000_000))}}, nil
		},
		ManifestText: func(_ context.Context, path string) ([]byte, string) {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err.Error()
			}
			return data, ""
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	forward := httptest.NewServer(toSocket(socket))
	s.leave = sync.OnceFunc(func() {
		forward.CloseClientConnections()
		forward.Close()
		cancel()
		<-done
		store.Close(context.Background())
	})
	t.Cleanup(s.leave)
	s.tcp, s.root = e.Page(), forward.URL+"/"
	return s
}

// toSocket forwards requests to a socket, as ssh -L does.
func toSocket(socket string) http.Handler {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "localhost"})
	p.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	p.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	return p
}

// fill reports the pods, the node and the manifests of testdata.
func (s *site) fill(t *testing.T) {
	t.Helper()
	for _, p := range podsOf(t, "pods.yaml") {
		s.store.SetPod(p.Namespace+"/"+p.Name, p)
	}
	var n v1.Node
	read(t, "node.yaml", &n)
	for k := range n.Status.Conditions {
		n.Status.Conditions[k].LastTransitionTime = metav1.NewTime(time.Now().Add(-50 * time.Hour))
	}
	s.store.SetNode(&n)
	s.store.SetRuntime(status.Runtime{Up: true, Endpoint: "unix:///run/containerd/containerd.sock", Name: "containerd", Version: "2.4.2", Since: time.Now().Add(-50 * time.Hour)})
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	good, bad := filepath.Join(s.dir, "web.yaml"), filepath.Join(s.dir, "mqtt.yaml")
	for path, name := range map[string]string{good: "good.yaml", bad: "bad.yaml"} {
		data, err := files.ReadFile("testdata/" + name)
		if err == nil {
			err = os.WriteFile(path, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	since := time.Now().Add(-5*time.Hour - 10*time.Minute)
	s.store.SetManifests(status.Manifests{Dir: s.dir, Files: []status.File{
		{Path: bad, Pods: []string{"default/mqtt"}, Held: true, State: status.Rejected, Since: since, Problems: []decode.Problem{
			{File: bad, Line: 9, Column: 5, Pod: "default/mqtt", Field: "spec.containers[0].imag", Message: `unknown field; did you mean "image"?`}}},
		{Path: good, Pods: []string{"default/web"}, State: status.Accepted, Since: since,
			Versions: []status.Version{{Pod: "default/web", State: status.Accepted, Since: since, Hash: poduid.ContentHash("3f9ac1d2e4b5a6978877"), Running: poduid.ContentHash("3f9ac1d2e4b5a6978877")}}},
	}})
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := files.ReadFile("testdata/" + name)
	if err == nil {
		err = yaml.UnmarshalStrict(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// podsOf returns the pods of a file, whose times are as if it were now noon of 2026-01-01.
func podsOf(t *testing.T, name string) (all []*v1.Pod) {
	t.Helper()
	var list v1.PodList
	read(t, name, &list)
	late := time.Since(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	for k := range list.Items {
		p := &list.Items[k]
		move := func(at *metav1.Time) {
			if !at.IsZero() {
				*at = metav1.NewTime(at.Add(late))
			}
		}
		move(&p.CreationTimestamp)
		if p.Status.StartTime != nil {
			move(p.Status.StartTime)
		}
		for j := range p.Status.Conditions {
			move(&p.Status.Conditions[j].LastTransitionTime)
		}
		for _, statuses := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for j := range statuses {
				for _, state := range []v1.ContainerState{statuses[j].State, statuses[j].LastTerminationState} {
					if state.Running != nil {
						move(&state.Running.StartedAt)
					}
					if state.Terminated != nil {
						move(&state.Terminated.StartedAt)
						move(&state.Terminated.FinishedAt)
					}
				}
			}
		}
		all = append(all, p)
	}
	return all
}

// trends returns a trend for each pod that runs, another one for each.
func trends(store *status.Store) map[string]status.Trend {
	all := map[string]status.Trend{}
	for k, p := range store.Pods() {
		if p.Status.Phase != v1.PodRunning {
			continue
		}
		t := status.Trend{UID: string(p.UID)}
		for m := range 60 {
			wave := 1 + math.Sin(float64(m)/float64(4+k))/2 + float64(m%7)/20
			t.Points = append(t.Points, status.Point{CPU: uint32(40 * wave * float64(k+1)), Memory: uint32(30000 + 500*m*(k%3) + 900*(m%5))})
		}
		last := t.Points[len(t.Points)-1]
		t.CPU, t.Memory = new(uint64(last.CPU)*1e6), new(uint64(last.Memory)<<10)
		all[t.UID] = t
	}
	return all
}

// get returns the body of an answer to a browser.
func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(fmt.Sprint(url, ": ", answer.Status, " ", err))
	}
	return string(data)
}
