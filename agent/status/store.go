// Package status holds what the agent reports: the status of each pod, the result
// of each manifest, and whether the runtime answers. It keeps one copy in memory
// for the endpoint and the command line, and writes one to disk for other
// readers. Reports are not state: a failed write is logged and retried, and never
// affects the caller.
package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"monopod/agent/disk"
	"monopod/agent/message"
	"monopod/agent/wake"
)

// Store keeps reports in memory and on disk:
//
//	<dir>/pods/<namespace>_<name>.json   a v1 Pod with its status
//	<dir>/manifests.json                 a Manifests
//	<dir>/node.json                      a v1 Node with conditions and a heartbeat
//	<dir>/runtime.json                   the Runtime that answered last
//
// Files are 0600 in 0700 folders, for a status holds env values. A power cut may undo the last
// writes, or leave a new file empty: what must survive is in checkpoints. Any goroutine may call
// any method; only Open, Previous and Close wait for the disk.
type Store struct {
	dir    string
	log    *slog.Logger
	writer *writer

	encoded encodedFiles // of the writer's goroutine

	mu         sync.RWMutex // guards what follows
	pods       map[string]Report
	given      Manifests  // as SetManifests and SetSettings have them
	joined     *Manifests // the same, completed from the pods; nil: to be made
	before     *Manifests // the last joined, at first of an earlier run; nil: none
	versions   []Version  // room for those of a file
	runtime    Runtime
	written    Runtime // the content of runtime.json
	node       *v1.Node
	nodePublic message.Book      // what clients other than root may read of its messages
	nodeBy     time.Time         // when a report on the node with only a new heartbeat is written
	listeners  []wake.Slot       // see Changes
	wrong      map[string]string // what is wrong with parts of the agent, by part

	past sync.Mutex // held while a file of an earlier run is read: a damaged one is logged once
}

// Open returns the store in dir, which it makes if necessary, without the unfinished files that a
// killed process left there. Files of an earlier run stay until SetPod, RemovePod or Sweep. On a
// disk that takes no data the folder is left as it is, and written as soon as the disk takes data.
func Open(dir string, log *slog.Logger) (*Store, error) {
	for _, d := range []string{dir, filepath.Join(dir, "pods")} {
		if err := openDir(d); err != nil && !disk.Unwritable(err) {
			return nil, fmt.Errorf("open status folder: %w", err)
		}
	}
	s := &Store{dir: dir, log: log, pods: map[string]Report{}, wrong: map[string]string{}, before: previousManifests(dir, log)}
	s.writer = startWriter(dir, log)
	return s, nil
}

// openDir makes dir private and clean.
func openDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil && !disk.Unwritable(err) {
		return err
	}
	return disk.RemoveTemps(dir)
}

// Close writes the pending files, each once, and ends the writer. It returns an error if files
// stayed unwritten or ctx ended first. Later reports are kept in memory only.
func (s *Store) Close(ctx context.Context) error { return s.writer.close(ctx) }

// Report is the report of a pod.
type Report struct {
	Pod *v1.Pod
	// Public has what clients other than root may read of the messages in Pod. It is in memory
	// only: messages reported by an earlier run are for root alone, until they are found again.
	Public message.Book
}

// SetPod reports a pod of whose messages only root may read any.
func (s *Store) SetPod(key string, pod *v1.Pod) { s.SetReport(key, Report{Pod: pod}) }

// SetReport reports a pod under its key, "namespace/name". The store owns all of it from now on:
// it must not be changed. Nothing happens if it equals the last one.
func (s *Store) SetReport(key string, r Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, pod := s.pods[key].Pod, r.Pod
	if old != nil && equality.Semantic.DeepEqual(old, pod) {
		s.pods[key] = Report{old, r.Public}
		return
	}
	s.pods[key] = r
	s.writer.put(podFile(key), pod)
	if old == nil || hashRunning(old) != hashRunning(pod) {
		s.rejoin()
	}
	s.changed()
}

// RemovePod forgets a pod and removes its file, this run's or an earlier one's.
func (s *Store) RemovePod(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[key].Pod != nil {
		delete(s.pods, key)
		s.rejoin()
	}
	s.writer.put(podFile(key), nil)
	s.changed()
}

// Sweep removes the files of an earlier run whose pods are neither among keys
// nor reported by now.
func (s *Store) Sweep(keys []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keep := map[string]bool{}
	for _, key := range slices.Concat(keys, slices.Collect(maps.Keys(s.pods))) {
		keep[podFile(key)] = true
	}
	s.writer.sweep(keep)
}

// Pod returns the last report of a pod. Callers must not change it.
func (s *Store) Pod(key string) (*v1.Pod, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.pods[key]
	return r.Pod, ok
}

// Pods returns all pods, sorted by key. Callers must not change them.
func (s *Store) Pods() []*v1.Pod {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pods := make([]*v1.Pod, 0, len(s.pods))
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		pods = append(pods, s.pods[key].Pod)
	}
	return pods
}

// Reports is Pods with what clients other than root may read of their messages.
func (s *Store) Reports() []Report {
	s.mu.RLock()
	defer s.mu.RUnlock()
	reports := make([]Report, 0, len(s.pods))
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		reports = append(reports, s.pods[key])
	}
	return reports
}

// Previous returns the pod as an earlier run of the agent last reported it. Once SetPod or
// RemovePod has been called for the key there is none.
func (s *Store) Previous(key string) (*v1.Pod, bool) {
	if _, ok := s.Pod(key); ok || s.writer.pending(podFile(key)) {
		return nil, false
	}
	s.past.Lock()
	defer s.past.Unlock()
	var pod v1.Pod
	err := disk.ReadOrAside(filepath.Join(s.dir, podFile(key)), func(b []byte) error {
		if len(bytes.Trim(b, "\x00")) == 0 { // left by a power cut
			return nil
		}
		if err := disk.JSON(&pod)(b); err != nil || pod.Name != "" {
			return err
		}
		return errors.New("it holds no pod")
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("the previous run's status of the pod cannot be read", "pod", key, "err", err)
	}
	return &pod, err == nil && pod.Name != ""
}

// Last returns the last report of the pod, by this run of the agent or an earlier one.
func (s *Store) Last(key string) (*v1.Pod, bool) {
	if p, ok := s.Pod(key); ok {
		return p, true
	}
	if p, ok := s.Previous(key); ok {
		return p, true
	}
	return s.Pod(key) // it may have been reported in between, and is not the previous one any more
}

// SetManifests reports the results of the manifests, all but m.Settings. The store owns m's slices
// from now on.
func (s *Store) SetManifests(m Manifests) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Settings = s.given.Settings
	s.putManifests(m)
}

// SetSettings reports the problems of the agent's settings, in addition to those
// of manifests. The store owns problems from now on.
func (s *Store) SetSettings(problems []Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.given
	m.Settings = problems
	s.putManifests(m)
}

func (s *Store) putManifests(m Manifests) {
	if m.List == nil && m.Judge == nil && reflect.DeepEqual(s.given, m) {
		return
	}
	s.given = m
	s.writer.put("manifests.json", (*joinedManifests)(s))
	s.joined = nil
}

// Manifests returns the last report. Callers must not change its slices.
func (s *Store) Manifests() Manifests {
	m := s.join()
	m.Reports = s.problems()
	if err := s.writer.illness(); err != nil {
		m.Reports = append(m.Reports, Problem{Message: fmt.Sprintf("status files are older than what is shown, as they cannot be written: %v", err)})
	}
	return m
}

// SetProblem reports the problem of a part of the agent; "": it has none. It is in memory only.
func (s *Store) SetProblem(part, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" {
		delete(s.wrong, part)
	} else {
		s.wrong[part] = text
	}
	s.changed()
}

// problems returns the problems of the agent itself.
func (s *Store) problems() (all []Problem) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, part := range slices.Sorted(maps.Keys(s.wrong)) {
		all = append(all, Problem{Message: s.wrong[part]})
	}
	return all
}

// SetRuntime reports the runtime. Only one that answers is written, for commands that query it
// while no agent runs.
func (s *Store) SetRuntime(r Runtime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Up && s.written != r {
		s.written = r
		s.writer.put("runtime.json", r)
	}
	s.runtime = r
	s.changed()
}

// Runtime returns the last report.
func (s *Store) Runtime() Runtime {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.runtime
}

// OnTrouble sets the func that is called when a report cannot be written, once for each cause
// until all could be written again. It must return at once, and not call the store.
func (s *Store) OnTrouble(report func(err error)) {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	s.writer.trouble = report
}

// Changes returns a channel that signals changes of pods and of the runtime: its one slot is
// filled with each, so that a reader that empties it and then looks has seen the newest. The
// reader must do so for as long as the store lives.
func (s *Store) Changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := wake.New()
	s.listeners = append(s.listeners, c)
	return c
}

// changed signals a change: s.mu is held.
func (s *Store) changed() {
	for _, c := range s.listeners {
		c.Wake()
	}
}
