// Package hold keeps what the owner of the machine requests not to be changed: pods that are
// stopped, and versions that are held.
package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/message"
	"monopod/agent/status"
	"monopod/manifests"
)

// file is the record, in the root dir.
const file = "holds.json"

// State is the record on disk. It is never changed, only replaced. The keys of pods are
// namespace/name.
type State struct {
	Stopped map[string]Stop `json:"stopped,omitempty"`
	Held    map[string]Hold `json:"held,omitempty"`
	Node    *Hold           `json:"node,omitempty"` // nil: the node is not held
	Locks   map[string]Lock `json:"locks,omitempty"`
}

// Lock is a file with which the workload of a pod keeps its changes away, and for how long it has:
// each agent continues the count. An agent that does not know it counts from its own start, and drops
// the record when it writes the next one.
type Lock struct {
	UID   types.UID         `json:"uid"` // of the instance
	File  string            `json:"file"`
	Since checkpoint.Moment `json:"since"`           // zero: its time does not count now
	Spent time.Duration     `json:"spent,omitempty"` // the time that counted before
}

// Stop is a pod that runs nothing, whatever its manifest says.
type Stop struct {
	Since time.Time `json:"since"`
	// Starts: it is to run again, and was not admitted yet.
	Starts bool `json:"starts,omitempty"`
}

// Hold keeps what runs from being changed.
type Hold struct {
	Reason string          `json:"reason,omitempty"`
	Since  time.Time       `json:"since"` // by the clock of that moment
	At     checkpoint.Mark `json:"at"`    // the same moment
	For    time.Duration   `json:"for,omitempty"`
}

// lasted returns how long it has lasted.
func (h Hold) lasted(now checkpoint.Moment) time.Duration {
	return checkpoint.Moment{Mark: h.At, Wall: h.Since}.Since(now)
}

// Over reports whether the hold has ended: see checkpoint.Moment for what counts.
func (h Hold) Over(now checkpoint.Moment) bool { return h.For > 0 && h.lasted(now) >= h.For }

// Ends returns when it ends by the machine's clock; zero: when it is released.
func (h Hold) Ends() time.Time {
	if h.For == 0 {
		return time.Time{}
	}
	return h.Since.Add(h.For)
}

// byClock returns the hold with the beginning that the present clock would have shown, if it was
// set since: then that is when it ends by this clock.
func (h Hold) byClock(now checkpoint.Moment) Hold {
	began := now.Wall.Add(-h.lasted(now))
	if d := began.Sub(h.Since); d > time.Minute || d < -time.Minute {
		h.Since = began.Truncate(time.Minute)
	}
	return h
}

// Text returns that it holds, why, and until when.
func (h Hold) Text() string { return h.Said().String() }

// Said is Text, whose reason only root may read.
func (h Hold) Said() message.Text {
	text := message.Fixed("held")
	if h.Reason != "" {
		text = message.Of("%s: %s", text, message.Private(h.Reason))
	}
	if h.For > 0 {
		text = message.Of("%s until %s", text, message.Time(h.Ends()))
	}
	return text
}

// Store is the record, on disk if it was opened. Any goroutine may use it.
type Store struct {
	path string // "": in memory only
	boot checkpoint.Boot

	mu    sync.Mutex // held while the record changes
	state atomic.Pointer[State]
	ended endedStops
}

// endedStops are stops that are over and are still in the record. They do not count any more,
// whatever the disk takes; the next change that it takes omits them. An agent that starts before
// that finds them in the record, and has no other source.
type endedStops struct {
	mu  sync.Mutex // never held during a wait for the disk
	all map[string]Stop
}

func (e *endedStops) add(name string, stop Stop) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[string]Stop{}
	}
	e.all[name] = stop
}

// now returns those that are not recorded; nil: there is none.
func (e *endedStops) now() map[string]Stop {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all) == 0 {
		return nil
	}
	return maps.Clone(e.all)
}

// recorded is called once the record is on disk without these stops.
func (e *endedStops) recorded(over map[string]Stop) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.all, func(name string, stop Stop) bool { return over[name] == stop })
}

// Open reads the record in the root dir. An error means that there is one that cannot be read.
// Then the pods are stopped that were last reported as stopped; the caller must report that the
// others are not held.
func Open(root *checkpoint.Root, boot checkpoint.Boot, reported *status.Store, checkpoints []*checkpoint.Checkpoint) (*Store, error) {
	s := &Store{path: root.Path(file), boot: boot}
	var read State
	err := disk.ReadOrAside(s.path, disk.JSON(&read))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		s.state.Store(&read)
		return s, nil
	}
	lost := State{Stopped: map[string]Stop{}}
	for _, key := range reportedStopped(reported, checkpoints) {
		lost.Stopped[key] = Stop{Since: time.Now()}
	}
	s.state.Store(&lost)
	err = fmt.Errorf("record of stopped and held pods: %w; pods that were reported as stopped stay stopped, none is held: hold again what is to be", err)
	return s, errors.Join(err, s.Change(func(*State) {})) // for the next agent
}

// Recorded returns the part of the record in a root dir that counts now, for commands without a
// running agent; nothing if there is none, or none that can be read. The end of a hold is by the
// clock.
func Recorded(dir string) State {
	state, _ := ReadRecord(dir)
	return state
}

// ReadRecord is Recorded with the error of a record that is there and cannot be read.
func ReadRecord(dir string) (State, error) {
	var read State
	err := disk.Read(filepath.Join(dir, file), disk.JSON(&read))
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("record of stopped and held pods: %w", err)
	}
	return read.at(checkpoint.Moment{Wall: time.Now()}), nil
}

// State returns what counts now, without the holds that are over.
func (s *Store) State() State {
	now, _ := s.now()
	return now
}

// now is State, with the stops that are over and were left out. These are read first: the record
// may be written without them meanwhile.
func (s *Store) now() (now State, over map[string]Stop) {
	over = s.ended.now()
	recorded := s.state.Load()
	if recorded == nil {
		return State{}, over
	}
	now = recorded.at(s.boot.Now())
	if over != nil {
		now.Stopped = maps.Clone(now.Stopped)
		maps.DeleteFunc(now.Stopped, func(name string, stop Stop) bool { return over[name] == stop })
	}
	return now, over
}

// EndStops ends the stops of pods, by their names, at once: on disk with the next Change. It
// reports whether there was any.
func (s *Store) EndStops(names []string) (any bool) {
	stopped := s.State().Stopped
	for _, name := range names {
		stop, is := stopped[name]
		if is {
			s.ended.add(name, stop)
			any = true
		}
	}
	return any
}

// Of returns the hold of a pod, by its key, or for "" of the node; nil: none.
func (s *Store) Of(pod string) *Hold {
	state := s.state.Load()
	if state == nil {
		return nil
	}
	h, held := state.Held[pod]
	if pod == "" && state.Node != nil {
		h, held = *state.Node, true
	}
	now := s.boot.Now()
	if !held || h.Over(now) {
		return nil
	}
	h = h.byClock(now)
	return &h
}

// at returns the record without the holds that are over at that moment.
func (s *State) at(now checkpoint.Moment) State {
	out := *s
	if len(s.Held) > 0 {
		out.Held = map[string]Hold{}
	}
	for key, h := range s.Held {
		if !h.Over(now) {
			out.Held[key] = h.byClock(now)
		}
	}
	if s.Node != nil {
		node := s.Node.byClock(now)
		out.Node = &node
	}
	if s.Node != nil && s.Node.Over(now) {
		out.Node = nil
	}
	return out
}

// Held returns why and until when a pod, by its key, or for "" the node is held; nothing: it is
// not.
func (s *Store) Held(pod string) message.Text {
	if h := s.Of(pod); h != nil {
		return h.Said()
	}
	return message.Text{}
}

// Change replaces the record, on disk first. If the disk does not take it, nothing changes.
func (s *Store) Change(with func(*State)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, over := s.now()
	next.Stopped, next.Held = clone(next.Stopped), clone(next.Held)
	with(&next)
	if s.path != "" {
		b, err := json.Marshal(next)
		if err != nil {
			return fmt.Errorf("record of stopped and held pods: %w", err)
		}
		if err := disk.WriteFile(s.path, append(disk.Seal(b), '\n'), 0o600); err != nil {
			return fmt.Errorf("record of stopped and held pods: %w", err)
		}
	}
	s.state.Store(&next)
	s.ended.recorded(over)
	return nil
}

func clone[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}

// Hold returns a hold that begins now. 0: it has no end.
func (s *Store) Hold(reason string, lasts time.Duration) Hold {
	return Hold{Reason: reason, Since: time.Now(), At: s.boot.Mark(), For: lasts}
}

// KeyOf returns the key of a pod by its name in the record.
func KeyOf(name string) manifests.Key {
	namespace, pod, _ := strings.Cut(name, "/")
	return manifests.Key{Namespace: namespace, Name: pod}
}

// reportedStopped returns the pods that a previous agent reported as stopped.
func reportedStopped(s *status.Store, checkpoints []*checkpoint.Checkpoint) (names []string) {
	for _, c := range checkpoints {
		if p, ok := s.Previous(c.Key().String()); ok && p.Status.Reason == status.ReasonStopped {
			names = append(names, c.Key().String())
		}
	}
	return names
}
