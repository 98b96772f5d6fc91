package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/status"
)

// tellers serves events on both ends. web has an env value.
func tellers(t *testing.T) (r *events.Recorder, socket, tcp *http.Client, address string) {
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := status.Open(t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	web := &v1.Pod{}
	web.Namespace, web.Name, web.UID = "default", "web-n", "u"
	web.Spec.Containers = []v1.Container{{Name: "main", Env: []v1.EnvVar{{Name: "A", Value: "hunter2"}, {Name: "B", Value: "hunter22"}, {Name: "C", Value: "on"}}}}
	store.SetPod("default/web-n", web)
	r = events.Open(events.Config{Node: "n", Log: log})
	path := filepath.Join(t.TempDir(), "s")
	s, err := Listen(Config{Listen: "127.0.0.1:0", Socket: path, Store: store, Events: r, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		r.Close()
		cancel()
		<-done
		store.Close(context.Background())
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return r, &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: time.Minute}, &http.Client{Timeout: time.Minute}, "http://" + s.Addr().String()
}

func ask(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func messages(t *testing.T, body string) string {
	t.Helper()
	var list v1.EventList
	if err := json.Unmarshal([]byte(body), &list); err != nil || list.Kind != "EventList" || list.APIVersion != "v1" {
		t.Fatalf("%v: %s", err, body)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Reason+": "+e.Message)
	}
	return strings.Join(out, "; ")
}

func TestEventsAreListed(t *testing.T) {
	r, socket, tcp, address := tellers(t)
	if _, body := ask(t, socket, "http://x/events"); body != `{"kind":"EventList","apiVersion":"v1","metadata":{},"items":[]}`+"\n" {
		t.Errorf("no events are %s", body)
	}
	web, gone := events.PodRef("default", "web-n", "u"), events.PodRef("default", "gone-n", "u2")
	r.Record(web, v1.EventTypeWarning, "Unhealthy", message.Of("Readiness probe failed: %s", message.Private("tried hunter2")))
	r.Record(web, v1.EventTypeWarning, "Failed", message.Private("Error: hunter2"))
	r.Record(gone, v1.EventTypeNormal, "Killing", message.Of("Stopping container %s", message.Name("c")))
	r.Record(events.NodeRef("n"), v1.EventTypeWarning, "ImageGCFailed", message.Private("the runtime says hunter2"))
	r.Record(events.FileRef("/m/web.yaml"), v1.EventTypeWarning, "FailedValidation", message.Fixed("it is wrong"))
	rows := []struct {
		name, query string
		client      *http.Client
		base, want  string
	}{
		{"all, on the socket", "", socket, "http://x", "Unhealthy: Readiness probe failed: tried hunter2; Failed: Error: hunter2; Killing: Stopping container c; ImageGCFailed: the runtime says hunter2; FailedValidation: it is wrong"},
		{"all, over TCP", "", tcp, address, "Unhealthy: Readiness probe failed: <elided>; Failed: <elided>; Killing: Stopping container c; ImageGCFailed: <elided>"},
		{"of a pod, on the socket", "?pod=default/gone-n", socket, "http://x", "Killing: Stopping container c"},
		{"of no pod", "?pod=default/other", socket, "http://x", ""},
		{"of a pod, over TCP", "?pod=default/web-n", tcp, address, "Unhealthy: Readiness probe failed: <elided>; Failed: <elided>"},
		{"of a pod that is gone, over TCP", "?pod=default/gone-n", tcp, address, "Killing: Stopping container c"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			code, body := ask(t, row.client, row.base+"/events"+row.query)
			if got := messages(t, body); code != http.StatusOK || got != row.want {
				t.Errorf("%d %s\nwant %s", code, got, row.want)
			}
		})
	}
	for _, query := range []string{"?pod=web-n", "?pod=/", "?pod=default/", "?watch=perhaps"} {
		if code, body := ask(t, socket, "http://x/events"+query); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
}

func TestEventsAreWatched(t *testing.T) {
	r, socket, tcp, address := tellers(t)
	web := events.PodRef("default", "web-n", "u")
	r.Record(web, v1.EventTypeNormal, "Before", message.Private("hunter2"))
	for _, row := range []struct {
		name, url, want string
		client          *http.Client
	}{
		{"on the socket", "http://x/events?watch=1&pod=default/web-n", "hunter2", socket},
		{"over TCP", address + "/events?watch=true", "<elided>", tcp},
	} {
		resp, err := row.client.Get(row.url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		next := func(reason string) {
			t.Helper()
			var e v1.Event
			if !lines.Scan() {
				t.Fatalf("%s: the stream has ended: %v", row.name, lines.Err())
			}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Reason != reason || e.Message != row.want || e.Kind != "Event" {
				t.Errorf("%s: %v %s, want %s", row.name, err, lines.Bytes(), reason)
			}
		}
		next("Before")
		r.Record(events.FileRef("/m/web.yaml"), v1.EventTypeWarning, "FailedValidation", message.Private(row.name+": got a number (90817263)"))
		r.Record(web, v1.EventTypeNormal, "After "+row.name, message.Private("hunter2"))
		if row.client == tcp {
			next("After on the socket")
		}
		next("After " + row.name)
		if row.client == tcp {
			r.Close() // the agent ends
			if lines.Scan() || lines.Err() != nil {
				t.Errorf("after the end: %q, %v", lines.Text(), lines.Err())
			}
		}
	}
	if code, body := ask(t, socket, "http://x/events?watch=1"); code != http.StatusServiceUnavailable {
		t.Errorf("a watch after the end: %d %s", code, body)
	}
	resp, err := socket.Head("http://x/events?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// A watcher that goes away makes room for another.
func TestAWatcherThatGoesAwayIsForgotten(t *testing.T) {
	r, socket, _, _ := tellers(t)
	for range maxStreams + 8 {
		resp, err := socket.Get("http://x/events?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		r.Record(events.NodeRef("n"), v1.EventTypeNormal, "A", message.Private("x"))
		if resp.StatusCode == http.StatusServiceUnavailable { // those before have not been noticed yet
			time.Sleep(10 * time.Millisecond)
		}
		resp.Body.Close()
	}
	for range 500 {
		resp, err := socket.Get("http://x/events?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("watchers that went away still count")
}
