package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/panics"
	"monopod/agent/podlog"
)

const (
	logBuffer = 32 << 10
	// overEvery is how often a request that follows a log checks whether its
	// container has ended.
	overEvery = time.Second
)

// logQuery is the query of a request for a log, in the kubelet's words.
type logQuery struct {
	follow, previous, timestamps bool
	stream                       string
	since                        time.Time
	tail                         *int64
	limit                        int64 // 0: none
}

// Errors of a query, with the kubelet's texts.
var (
	errQuery   = errors.New(`{"message": "Unable to decode query."}`)
	errInvalid = errors.New(`{"message": "Invalid request."}`)
)

func parseLogQuery(q url.Values, now time.Time) (l logQuery, err error) {
	l.follow, l.previous, l.timestamps = flag(q, "follow"), flag(q, "previous"), flag(q, "timestamps")
	if !q.Has("tailLines") && q.Has("tail") && q.Get("tail") != "all" {
		q.Set("tailLines", q.Get("tail"))
	}
	tail, e1 := number(q, "tailLines", 0)
	limit, e2 := number(q, "limitBytes", 1)
	seconds, e3 := number(q, "sinceSeconds", 1)
	if err = errors.Join(e1, e2, e3); err != nil {
		if errors.Is(err, errQuery) {
			return l, errQuery
		}
		return l, errInvalid
	}
	l.tail = tail
	if limit != nil {
		l.limit = *limit
	}
	if seconds != nil {
		l.since = now.Add(-time.Duration(min(*seconds, 1<<32)) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" {
		if l.since, err = time.Parse(time.RFC3339, text); err != nil {
			return l, errQuery
		}
		if seconds != nil {
			return l, errInvalid
		}
	}
	switch stream := q.Get("stream"); stream {
	case "", "All":
	case "Stdout", "Stderr":
		l.stream = strings.ToLower(stream)
	default:
		return l, errInvalid
	}
	return l, nil
}

// flag is on when it is there with any value but false.
func flag(q url.Values, name string) bool {
	text := q.Get(name)
	return q.Has(name) && text != "0" && !strings.EqualFold(text, "false")
}

func number(q url.Values, name string, least int64) (*int64, error) {
	if q.Get(name) == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	switch {
	case err != nil:
		return nil, errQuery
	case n < least:
		return nil, errInvalid
	}
	return &n, nil
}

// containerLogs answers with the log of one attempt of a container, as the
// kubelet does, its rotated logs included.
func (s *Server) containerLogs(_ bool, w http.ResponseWriter, r *http.Request) {
	q, err := parseLogQuery(r.URL.Query(), time.Now())
	switch {
	case errors.Is(err, errQuery):
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, ok := s.config.Store.Pod(namespace + "/" + name)
	if !ok {
		http.Error(w, fmt.Sprintf("pod %q does not exist", name), http.StatusNotFound)
		return
	}
	if !hasContainer(pod, container) {
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", container, name), http.StatusNotFound)
		return
	}
	dir, status := podlog.Dir(s.config.PodLogs, pod, container), podlog.StatusOf(pod, container)
	attempt, err := podlog.AttemptOf(dir, status, q.previous)
	switch {
	case errors.Is(err, podlog.ErrNoPrevious):
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", container, name), http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start: %s", container, name, podlog.Waits(status)), http.StatusBadRequest)
		return
	}
	plain(w)
	if r.Method == http.MethodHead {
		return
	}
	st, end, ok := s.stream(w, r)
	if !ok {
		return
	}
	defer end()
	err = s.sendLog(st, dir, pod, container, attempt, q)
	switch {
	case err == nil:
	case st.started:
		s.config.Log.Debug("log was not sent to its end", "pod", namespace+"/"+name, "container", container, "err", err)
		panic(http.ErrAbortHandler) // half a log must not look whole
	default:
		what := "cannot be read: " + err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			what = "is gone"
		}
		http.Error(st, fmt.Sprintf("the log of container %q in pod %q %s", container, name, what), http.StatusInternalServerError)
	}
}

func hasContainer(p *v1.Pod, name string) bool {
	is := func(c v1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(p.Spec.Containers, is) || slices.ContainsFunc(p.Spec.InitContainers, is)
}

// sendLog sends the log of an attempt. Following ends with the attempt.
func (s *Server) sendLog(st *stream, dir string, pod *v1.Pod, container string, attempt int, q logQuery) error {
	out := bufio.NewWriterSize(st, logBuffer)
	p := &podlog.Printer{W: out, Timestamps: q.timestamps, Limit: q.limit}
	o := podlog.Options{Which: podlog.Only, Attempt: attempt, Stream: q.stream, Since: q.since, Tail: q.tail, Follow: q.follow, Idle: out.Flush}
	if q.follow {
		ctx, cancel := context.WithCancel(st.ctx)
		over := make(chan struct{})
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			if err := panics.Contain(func() { s.untilOver(ctx, pod, container, attempt, over) }); err != nil {
				s.config.Log.Error("following a log does not end with its container", append(panics.Logged(err), "pod", pod.Namespace+"/"+pod.Name)...)
			}
		}()
		defer func() { cancel(); <-watched }()
		o.Ended = over
	}
	err := podlog.Read(st.ctx, dir, o, p.Print)
	if errors.Is(err, podlog.ErrLimit) {
		err = nil
	}
	return errors.Join(err, out.Flush())
}

// untilOver closes over when the attempt writes no more. It reads only memory.
func (s *Server) untilOver(ctx context.Context, pod *v1.Pod, container string, attempt int, over chan<- struct{}) {
	tick := time.NewTicker(overEvery)
	defer tick.Stop()
	for {
		now, ok := s.config.Store.Pod(pod.Namespace + "/" + pod.Name)
		if !ok || now.UID != pod.UID {
			close(over)
			return
		}
		if c := podlog.StatusOf(now, container); c != nil && podlog.Over(c, attempt) {
			close(over)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
