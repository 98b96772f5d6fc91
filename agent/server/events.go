package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/events"
)

// watchFor is when a watch ends; the client may start another.
const watchFor = time.Hour

// events answers with a v1 EventList, the latest last: of one pod with ?pod=namespace/name. With
// ?watch=1 it is one v1 Event after the other, a line of JSON each: the existing ones, then new
// ones, and repeated ones with their new count. Clients that are not local get the public ones.
func (s *Server) events(local bool, w http.ResponseWriter, r *http.Request) {
	pod := r.URL.Query().Get("pod")
	if namespace, name, ok := strings.Cut(pod, "/"); pod != "" && (!ok || namespace == "" || name == "") {
		http.Error(w, "pod: write it as namespace/name, with its full name", http.StatusBadRequest)
		return
	}
	list, watch := s.config.Events.List, s.config.Events.Watch
	if !local {
		list, watch = s.config.Events.ListPublic, s.config.Events.WatchPublic
	}
	switch r.URL.Query().Get("watch") {
	case "1", "true":
		s.watchEvents(w, r, func() (*events.List, *events.Watch, error) { return watch(pod) })
	case "", "0", "false":
		writeEvents(w, list(pod))
	default:
		http.Error(w, "watch: choose 1 or 0", http.StatusBadRequest)
	}
}

// writeEvents writes a list one event at a time, so that no buffer has to hold
// them all.
func writeEvents(w http.ResponseWriter, all *events.List) {
	w.Header().Set("Content-Type", "application/json")
	write := func(data string) {
		if _, err := w.Write([]byte(data)); err != nil {
			panic(http.ErrAbortHandler) // the client is gone
		}
	}
	write(`{"kind":"EventList","apiVersion":"v1","metadata":{},"items":[`)
	sep := ""
	all.Each(func(e *v1.Event) bool {
		e.TypeMeta = metav1.TypeMeta{}
		data, err := json.Marshal(e)
		if err != nil {
			panic(http.ErrAbortHandler) // half a list must not look whole
		}
		write(sep)
		write(string(data))
		sep = ","
		return true
	})
	write("]}\n")
}

// watchEvents writes events until the client leaves, the agent ends, or the time is up.
func (s *Server) watchEvents(w http.ResponseWriter, r *http.Request,
	start func() (*events.List, *events.Watch, error)) {
	st, end, ok := s.stream(w, r) // first: the limit of the listener is the only one
	if !ok {
		return
	}
	defer end()
	past, watch, err := start()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer watch.Close()
	ctx, cancel := context.WithTimeout(st.ctx, watchFor)
	defer cancel()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodHead {
		return
	}
	send := func(e *v1.Event) bool {
		data, err := json.Marshal(e)
		if err == nil {
			_, err = st.Write(append(data, '\n'))
		}
		return err == nil
	}
	sent := st.control.Flush() == nil // the client learns that it watches before anything happens
	past.Each(func(e *v1.Event) bool { sent = sent && send(e); return sent })
	for sent {
		e, ok := watch.Next(ctx.Done())
		if !ok {
			return
		}
		sent = send(e)
	}
}
