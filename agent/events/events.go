// Package events keeps what happened to pods and the node, as v1 Events: similar events are
// counted instead of repeated, floods are dropped, and the rest is kept in memory and in a file
// that survives the agent. Events are reports: a caller never waits, and a full disk stops nothing
// else.
package events

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/wake"
)

// Component is the source of all events.
const Component = "monopod"

// MessageLimit is how long a message may be, in bytes (the API's limit).
const MessageLimit = 1024

// Config is the settings of a Recorder.
type Config struct {
	Path string       // of the file; "": none
	Node string       // the node whose events they are
	Log  *slog.Logger // must be given
}

// Recorder keeps events. Any goroutine may call any method but Run and Close.
type Recorder struct {
	config       Config
	fresh, again wake.Slot // something new, or a repetition, must be written
	journal      journal   // Run's goroutine's, then Close's

	mu       sync.Mutex // guards what follows
	memory   memory
	watchers map[*Watch]bool
	over     bool // no new watch is accepted
}

// Open returns a Recorder that continues with the events of the file. Run must be
// called to write meanwhile, Close to write the rest at the end.
func Open(c Config) *Recorder {
	r := &Recorder{config: c, fresh: wake.New(), again: wake.New(),
		journal: journal{path: c.Path}, watchers: map[*Watch]bool{}}
	r.memory.histories = map[subject]*history{}
	if c.Path == "" {
		return r
	}
	old, torn, err := r.journal.load()
	if err != nil {
		c.Log.Warn("the previous run's events cannot be read", "err", err)
	}
	if torn > 0 {
		c.Log.Warn("lines of the previous run's events are damaged; leaving them out", "file", c.Path, "lines", torn)
	}
	for _, e := range old {
		r.memory.recall(recordOf(&e))
	}
	return r
}

// Event records an event and logs it, unless a similar one was logged within the last hour. kind
// is v1.EventTypeNormal or v1.EventTypeWarning.
func (r *Recorder) Event(about v1.ObjectReference, kind, reason string, text message.Text) {
	if !r.add(about, kind, reason, text, time.Time{}) {
		return
	}
	level := slog.LevelInfo
	if kind == v1.EventTypeWarning {
		level = slog.LevelWarn
	}
	r.config.Log.Log(context.Background(), level, clip(text.String()), append(logged(&about), "reason", reason)...)
}

// Record is Event for what the caller has logged in other words.
func (r *Recorder) Record(about v1.ObjectReference, kind, reason string, text message.Text) {
	r.add(about, kind, reason, text, time.Time{})
}

// RecordTry is Record for what failed and is tried again at next; zero: that is not known.
func (r *Recorder) RecordTry(about v1.ObjectReference, kind, reason string, text message.Text, next time.Time) {
	r.add(about, kind, reason, text, next)
}

// logged returns the log attributes of what an event is about.
func logged(about *v1.ObjectReference) []any {
	name := about.Name
	if about.Namespace != "" {
		name = about.Namespace + "/" + name
	}
	out := []any{strings.ToLower(about.Kind), name}
	if c := ContainerOf(about); c != "" {
		out = append(out, "container", c)
	}
	return out
}

// add records an event and reports whether it is a new one.
func (r *Recorder) add(about v1.ObjectReference, kind, reason string, text message.Text, next time.Time) (fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	rec, fresh := r.memory.add(about, kind, reason, text, now)
	if rec == nil {
		return false
	}
	rec.dirty, rec.next = true, next
	if fresh || now.Sub(rec.notified) >= renotify {
		rec.notified = now
		r.notify(rec)
	}
	if fresh {
		r.fresh.Wake()
	} else {
		r.again.Wake()
	}
	return fresh
}

// List returns the events about a pod, "namespace/name", or all if pod is "", the
// latest last. They may hold secrets: see ListPublic.
func (r *Recorder) List(pod string) *List { return r.list(view{pod: pod}) }

// ListPublic is List for readers who are not root: it leaves out the events about files, and all
// of the messages but their public part.
func (r *Recorder) ListPublic(pod string) *List { return r.list(view{pod, true}) }

func (r *Recorder) list(v view) *List {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listed(v)
}

// listed is list with r.mu held.
func (r *Recorder) listed(v view) *List {
	l := &List{node: r.config.Node}
	for rec := range r.memory.all() {
		if v.has(rec) {
			l.records = append(l.records, v.of(rec))
		}
	}
	slices.SortFunc(l.records, byTurn)
	return l
}

// List is a copy of the events at one moment. It is much smaller than they are.
type List struct {
	node    string
	records []record
}

// Each calls do with one event after the other until it returns false.
func (l *List) Each(do func(*v1.Event) bool) {
	for k := range l.records {
		if !do(l.records[k].event(l.node)) {
			return
		}
	}
}

// clip returns a message that fits into an event.
func clip(message string) string {
	message = strings.ToValidUTF8(message, "?")
	if len(message) > MessageLimit {
		message = strings.ToValidUTF8(message[:MessageLimit-len(cut)], "") + cut
	}
	return strings.TrimSpace(message)
}

// cut is the end of a message that was too long.
const cut = "..."
