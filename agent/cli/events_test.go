package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/cli/client"
	"monopod/agent/cli/clitest"
	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/print"
	"monopod/agent/server"
	"monopod/agent/status"
)

// shown compares what a command printed with testdata/cli/<name>.txt of the
// repository, or writes it there with MONOPOD_UPDATE=1.
func shown(t *testing.T, name, got string) {
	t.Helper()
	clitest.Page(t, filepath.Join("..", "..", "testdata", "cli", name+".txt"), got)
}

// happened is an event, so long ago.
func happened(about v1.ObjectReference, kind, reason, message string, count int32, first, last time.Duration) v1.Event {
	e := v1.Event{InvolvedObject: about, Type: kind, Reason: reason, Message: message, Count: count,
		FirstTimestamp: metav1.NewTime(now.Add(-first)), LastTimestamp: metav1.NewTime(now.Add(-last))}
	e.Namespace, e.Name = "default", about.Name[strings.LastIndexByte(about.Name, '/')+1:]+"."+strings.ToLower(reason)+"1"
	if about.Namespace != "" {
		e.Namespace = about.Namespace
	}
	e.Source = v1.EventSource{Component: "monopod", Host: "node1"}
	return e
}

func someEvents() []v1.Event {
	web := events.PodRef("default", "web-node1", "u1")
	app := events.ContainerRef(web, &v1.PodSpec{}, "app")
	gone := events.PodRef("default", "gone-node1", "u2")
	return []v1.Event{
		happened(events.NodeRef("node1"), "Normal", "Starting", "Starting monopod.", 1, 3*time.Hour, 3*time.Hour),
		happened(app, "Normal", "Pulled", `Container image "nginx:1" already present on machine and can be accessed by the pod`, 3, 3*time.Hour, 2*time.Minute),
		happened(app, "Warning", "Unhealthy", "Liveness probe failed: \x1b[2Jline one\nline two", 12, 10*time.Minute, 90*time.Second),
		happened(web, "Warning", "FailedMount", `MountVolume.SetUp failed for volume "v" : no such config map`, 1, time.Minute, time.Minute),
		happened(events.ContainerRef(gone, &v1.PodSpec{}, "c"), "Normal", "Killing", "Stopping container c", 1, 30*time.Second, 30*time.Second),
		happened(events.FileRef("/etc/m/bad.yaml"), "Warning", "FailedValidation", "/etc/m/bad.yaml:3:5: spec.x: unknown field", 1, time.Second, time.Second),
	}
}

// leave makes a root dir as an agent leaves it.
func leave(t *testing.T, pods string, m status.Manifests, happened []v1.Event) (root string) {
	t.Helper()
	root = t.TempDir()
	store := clitest.Store(t, filepath.Join(root, "status"), clitest.Pods(t, pods)...)
	store.SetManifests(m)
	if err := store.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, e := range happened {
		if err := json.NewEncoder(&lines).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "status", "events.jsonl"), lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// serve serves what an agent left, as the next one would that did nothing yet.
func serve(t *testing.T, root string) (socket string, r *events.Recorder, stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := status.Open(filepath.Join(t.TempDir(), "status"), log)
	if err != nil {
		t.Fatal(err)
	}
	old, err := client.LastKnown(filepath.Join(root, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range old.Pods {
		store.SetPod(p.Namespace+"/"+p.Name, &p)
	}
	store.SetManifests(old.Manifests)
	r = events.Open(events.Config{Path: filepath.Join(root, "status", "events.jsonl"), Node: "node1", Log: log})
	socket = filepath.Join(t.TempDir(), "s")
	s, err := server.Listen(server.Config{Socket: socket, Store: store, Events: r, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			r.Close()
			cancel()
			<-done
			store.Close(context.Background())
		}
	}
	t.Cleanup(stop)
	return socket, r, stop
}

func TestEvents(t *testing.T) {
	root := leave(t, well, status.Manifests{}, someEvents())
	socket, _, _ := serve(t, root)
	rows := []struct {
		name string
		o    EventsOptions
	}{
		{"events", EventsOptions{}},
		{"events-color", EventsOptions{Options: Options{Format: print.Format{Color: true}}}},
		{"events-wide", EventsOptions{Options: Options{Format: print.Format{Output: "wide"}}}},
		{"events-pod", EventsOptions{Pod: "web"}},
		{"events-pod-gone-yaml", EventsOptions{Pod: "default/gone", Options: Options{Format: print.Format{Output: "yaml"}}}},
		{"events-pod-json", EventsOptions{Pod: "gone-node1", Options: Options{Format: print.Format{Output: "json"}}}},
		{"events-pod-none", EventsOptions{Pod: "a-name-that-is-longer-than-most-names-of-pods-but-still-a-name"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var out, notes bytes.Buffer
			row.o.Columns = 500
			row.o.Source, row.o.Now, row.o.Err = client.Source{Socket: socket, Root: root}, now, &notes
			if err := Events(t.Context(), &out, row.o); err != nil || notes.Len() > 0 {
				t.Fatalf("%v %s", err, notes.String())
			}
			shown(t, row.name, out.String())
		})
	}
	for want, o := range map[string]EventsOptions{
		`there is no pod "wob"; there is default/web`: {Pod: "wob"},
	} {
		o.Socket, o.Now = socket, now
		if err := Events(t.Context(), io.Discard, o); err == nil || err.Error() != want {
			t.Errorf("Events = %v, want %s", err, want)
		}
	}
}

func TestEventsOfAnAgentThatIsDown(t *testing.T) {
	root := leave(t, well, status.Manifests{}, someEvents())
	paths, _ := filepath.Glob(filepath.Join(root, "status", "pods", "*"))
	for _, path := range append(paths, filepath.Join(root, "status", "events.jsonl")) {
		if err := os.Chtimes(path, now, now.Add(-3*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	var out, notes bytes.Buffer
	o := EventsOptions{Options: Options{Source: client.Source{Socket: "/nowhere/s", Root: root}, Format: print.Format{Now: now, Columns: 500}, Err: &notes}}
	if err := Events(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	shown(t, "events", out.String())
	want := "monopod: the agent does not run (no process answers on /nowhere/s): this is what it reported last, 3m ago\n"
	if notes.String() != want {
		t.Errorf("noted %q, want %q", notes.String(), want)
	}
	out.Reset()
	o.Pod = "web"
	if err := Events(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	shown(t, "events-pod", out.String())
	o.Watch = true
	if err := Events(t.Context(), io.Discard, o); !client.IsDown(err) || !strings.HasPrefix(err.Error(), "the agent does not run, so there is nothing to watch: ") {
		t.Errorf("watch: %v", err)
	}
	o.Root = filepath.Join(root, "elsewhere")
	if err := Events(t.Context(), io.Discard, o); err == nil || !strings.HasPrefix(err.Error(), "no monopod answers on /nowhere/s: "+client.WhereToLook()) {
		t.Errorf("without files: %v", err)
	}
}

// lineWriter lets a test wait for lines.
type lineWriter chan string

func (l lineWriter) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		l <- line
	}
	return len(b), nil
}

func TestEventsAreWatchedUntilTheAgentEnds(t *testing.T) {
	for _, output := range []string{"", "json"} {
		t.Run("as "+output, func(t *testing.T) {
			root := leave(t, well, status.Manifests{}, someEvents())
			socket, r, stop := serve(t, root)
			lines := make(lineWriter, 100)
			ended := make(chan error)
			go func() {
				o := EventsOptions{Options: Options{Source: client.Source{Socket: socket}, Format: print.Format{Output: output}, Err: io.Discard}, Pod: "gone", Watch: true}
				ended <- Events(t.Context(), lines, o)
			}()
			next := func(want string) {
				t.Helper()
				select {
				case line := <-lines:
					if !strings.Contains(line, want) {
						t.Errorf("printed %q, want %q", line, want)
					}
				case err := <-ended:
					t.Fatalf("ended with %v", err)
				}
			}
			if output == "" {
				next("LAST SEEN")
			}
			next("Killing")
			r.Record(events.PodRef("default", "web-node1", "u1"), "Normal", "Other", message.Private("x"))
			r.Record(events.PodRef("default", "gone-node1", "u2"), "Normal", "Started", message.Private("Container started"))
			next("Started")
			stop()
			if err := <-ended; err == nil || err.Error() != "the monopod on "+socket+" has ended" {
				t.Errorf("ended with %v", err)
			}
			if len(lines) > 0 {
				t.Errorf("printed %q too", <-lines)
			}
		})
	}
}
