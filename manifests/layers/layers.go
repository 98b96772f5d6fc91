// Package layers makes one sequence of snapshots of several folders of manifests, of which later
// ones win over earlier ones by the names of pods and objects.
//
// A Source reads each folder, so that each proves by itself what is gone from it. A folder that
// gave a name and has not been read since the agent started still gives it: what ran stays, and
// what another folder gives of that name neither starts nor takes its place.
package layers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"monopod/manifests"
)

// Layers are folders of manifests. All fields belong to the goroutine in Run but those of New.
type Layers struct {
	config   manifests.SourceConfig // of all
	all      []*layer               // the lowest first
	offered  chan struct{}          // one of them has another snapshot
	requests chan request
	record   *records
	saved    []*manifests.Object // as saved last
	failed   error               // of the last save; nil: none
	retry    time.Time           // when a failed save is tried again; zero: none failed
	current  content             // what is desired, as merged last
	moved    map[string]string   // see manifests.Record
	given    map[string][]string // likewise
	copies   map[*manifests.File]*manifests.File
	last     *manifests.Snapshot // as offered last
	next     chan manifests.Snapshot
}

// layer is one of the folders.
type layer struct {
	*manifests.Source
	dir   string
	runs  bool
	seen  *manifests.Snapshot // the newest; nil: none yet
	asked manifests.Outside   // as told last
	gave  map[string]bool     // the names that it has given since the agent started
}

// retrySave is the delay before a failed save is tried again.
const retrySave = time.Second

// New returns the Layers of at least two folders, the lowest first. The configuration is that of
// one Source; the URL is below all folders.
func New(dirs []string, c manifests.SourceConfig) *Layers {
	l := &Layers{config: c, offered: make(chan struct{}, 1), requests: make(chan request), next: make(chan manifests.Snapshot, 1),
		record: newRecords(c.Record, c.Save), saved: sortedObjects(c.KnownObjects), moved: c.Record.Moved, given: c.Record.Given}
	pods := make([]*manifests.Pod, 0, len(c.Known))
	for _, p := range c.Known {
		pods = append(pods, p.In(cmp.Or(l.moved[p.Key().String()], p.File)))
	}
	l.current = known(pods, c.KnownObjects)
	homes := homes{dirs, l.record}
	for k, dir := range dirs {
		of := c
		of.Dir, of.Layer = dir, &manifests.Layer{Masks: k > 0, Offered: l.offered}
		of.Known = slices.DeleteFunc(slices.Clone(pods), func(p *manifests.Pod) bool { return homes.of(p.File) != k })
		of.KnownObjects = slices.DeleteFunc(slices.Clone(c.KnownObjects), func(o *manifests.Object) bool { return homes.of(o.File) != k })
		of.Record = l.record.of(dir)
		of.Record.Moved = nil // pods have it already
		of.Save, of.SaveObjects = func(r manifests.Record) error { return l.record.saveOf(dir, r) }, nil
		if k > 0 {
			of.URL, of.Answers, of.Cached, of.SaveAnswer = "", nil, nil, nil
		}
		l.all = append(l.all, &layer{Source: manifests.NewSource(of), dir: dir, gave: map[string]bool{}})
	}
	return l
}

// homes tells to which folder a file belongs.
type homes struct {
	dirs   []string
	record *records
}

// of returns the index of the folder of a file. What is in none of them, as they were changed,
// counts as of the first that is new, which may have it elsewhere; what the URL gave is of the lowest.
func (h *homes) of(file string) int {
	isIn := func(dir string) bool { return file == dir || filepath.Dir(file) == dir }
	if k := slices.IndexFunc(h.dirs, isIn); k >= 0 {
		return k
	}
	if manifests.IsURL(file) {
		return 0
	}
	isNew := func(dir string) bool { return h.record.of(dir).Folder == nil }
	return max(0, slices.IndexFunc(h.dirs, isNew))
}

// SetDoubt is SetDoubt of each Source.
func (l *Layers) SetDoubt(doubt bool) {
	for _, one := range l.all {
		one.SetDoubt(doubt)
	}
}

// Snapshots delivers the desired pods, as those of a Source.
func (l *Layers) Snapshots() <-chan manifests.Snapshot { return l.next }

// Run reads the folders until ctx ends. It may be called once.
func (l *Layers) Run(ctx context.Context) {
	var sources sync.WaitGroup
	defer sources.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	l.surround()
	for {
		l.start(ctx, &sources)
		select {
		case <-ctx.Done():
			return
		case <-l.offered:
		case r := <-l.requests:
			r.answer <- r.do()
		case <-timer.C:
		}
		l.turn(time.Now())
		if !l.retry.IsZero() {
			timer.Reset(time.Until(l.retry))
		}
	}
}

// start starts to read each folder once those above it have been: what they mask is not read.
func (l *Layers) start(ctx context.Context, sources *sync.WaitGroup) {
	for _, one := range slices.Backward(l.all) {
		if !one.runs {
			one.runs = true
			sources.Go(func() { one.Source.Run(ctx) })
		}
		if one.seen == nil {
			return
		}
	}
}

// turn takes what the folders have, and offers the merged snapshot.
func (l *Layers) turn(now time.Time) {
	l.take()
	l.surround()
	if !l.isComplete() {
		return
	}
	m := l.merge()
	l.save(m, now) // before the snapshot takes effect
	l.current, l.moved, l.given, l.copies = m.content, m.moved, m.given, m.copies
	l.offer(m.snapshot())
}

// take takes the newest snapshots.
func (l *Layers) take() {
	for _, one := range l.all {
		select {
		case s := <-one.Source.Snapshots():
			one.seen = &s
			for _, p := range s.Pods {
				one.gave[p.Key().String()] = true
			}
			for _, o := range s.Objects {
				one.gave[o.String()] = true
			}
		default:
		}
	}
}

// isComplete reports whether each folder has been read, or found to be unreadable, with what the
// others have being known. It stays true.
func (l *Layers) isComplete() bool {
	return l.last != nil || !slices.ContainsFunc(l.all, func(one *layer) bool { return one.seen == nil || one.seen.Layer.Turn != one.asked.Turn })
}

// surround tells each folder what it must know of the others.
func (l *Layers) surround() {
	for k, one := range l.all {
		next := manifests.Outside{Masked: map[string]string{}, Claims: map[manifests.Key]bool{}, Turn: one.asked.Turn}
		for _, other := range l.all[k+1:] {
			if other.seen == nil {
				continue
			}
			for _, name := range other.seen.Layer.Masks {
				next.Masked[name] = filepath.Join(other.dir, name)
			}
		}
		for _, other := range l.all {
			if other != one && other.seen != nil {
				for _, c := range other.seen.Layer.Claims {
					next.Claims[c] = true
				}
			}
		}
		if reflect.DeepEqual(next, one.asked) {
			continue
		}
		next.Turn++
		one.asked = next
		one.Surround(next)
	}
}

// save saves what the next agent has to know. What fails is tried again.
func (l *Layers) save(m *merged, now time.Time) {
	if now.Before(l.retry) {
		return
	}
	err := errors.Join(l.record.save(m.moved, m.given), l.saveObjects(m.objects))
	if err == nil {
		l.failed, l.retry = nil, time.Time{}
		return
	}
	if l.failed == nil && l.config.Log != nil {
		l.config.Log.Error("what the folders of manifests give cannot be saved; after a restart monopod uses what was saved before", "err", err)
	}
	l.failed, l.retry = err, now.Add(retrySave)
}

// saveObjects saves all ConfigMaps and Secrets, unless they are saved already.
func (l *Layers) saveObjects(objects map[manifests.ObjectKey]*manifests.Object) error {
	all := sortedObjects(slices.Collect(maps.Values(objects)))
	if l.config.SaveObjects == nil || slices.Equal(all, l.saved) {
		return nil
	}
	if err := l.config.SaveObjects(all); err != nil {
		return err
	}
	l.saved = all
	return nil
}

// offer puts a snapshot into the slot if it differs from the last one.
func (l *Layers) offer(next manifests.Snapshot) {
	if l.last != nil && next.Same(l.last) {
		return
	}
	l.last = &next
	select {
	case <-l.next:
	default:
	}
	l.next <- next // the slot is free: there is no other sender
}

func sortedObjects(all []*manifests.Object) []*manifests.Object {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *manifests.Object) int { return a.Key().Compare(b.Key()) })
	return all
}

func comparePaths(f, g *manifests.File) int { return strings.Compare(f.Path, g.Path) }
