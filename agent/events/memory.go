package events

import (
	"iter"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
)

// Limits. The figures of similar events and of the storm are those of Kubernetes'
// own clients.
const (
	keepAll       = 1000             // events in all
	keepSubject   = 100              // of one thing
	repeatWithin  = time.Hour        // an event seen less long ago is counted instead of repeated
	similarMost   = 10               // the event with that many messages, and each after it, is combined with similar ones
	similarGap    = 10 * time.Minute // events so far apart are not similar
	stormBurst    = 25               // new events of one type about one thing at once
	stormInterval = 5 * time.Minute  // one more each
)

// memory is the stored events. Its zero value needs histories.
type memory struct {
	histories map[subject]*history
	count     int   // of all records
	stamp     int64 // the latest given
	turn      uint64
}

// subject is a thing under its name, in all its instances and parts.
type subject struct{ kind, namespace, name string }

func subjectOf(about *v1.ObjectReference) subject {
	return subject{about.Kind, about.Namespace, about.Name}
}

// history is what happened to one subject. It always has a record.
type history struct {
	records []*record
	storm   map[string]*bucket // by type
}

// add records an event. It returns the record that holds it now and whether that is a new one; nil
// if there were too many recently.
func (m *memory) add(about v1.ObjectReference, kind, reason string, text message.Text, now time.Time) (rec *record, fresh bool) {
	h := m.histories[subjectOf(&about)]
	if h == nil {
		h = &history{storm: map[string]*bucket{}}
	}
	combined := false
	if rec = h.find(&about, kind, reason, clip(text.String()), now); rec == nil {
		rec, combined = h.similar(&about, kind, reason, now)
	}
	if combined {
		text = message.Of(combinedPrefix+"%s", text)
	}
	whole, public := clip(text.String()), clip(text.Public())
	if rec != nil {
		rec.message, rec.public, rec.last, rec.turn = whole, public, now, m.next()
		rec.count++
		return rec, false
	}
	if !h.bucket(kind).take(now) {
		return nil, false
	}
	m.stamp = max(m.stamp+1, now.UnixNano())
	rec = &record{about: about, kind: kind, reason: reason, message: whole, public: public, combined: combined,
		count: 1, first: now, last: now, stamp: m.stamp, turn: m.next()}
	m.keep(h, rec)
	return rec, true
}

func (m *memory) next() uint64 {
	m.turn++
	return m.turn
}

// recall adds a record of the previous agent.
func (m *memory) recall(rec *record) {
	m.stamp, rec.turn = max(m.stamp, rec.stamp), m.next()
	h := m.histories[subjectOf(&rec.about)]
	if h == nil {
		h = &history{storm: map[string]*bucket{}}
	}
	m.keep(h, rec)
}

// keep adds a record, and drops the oldest if there are too many.
func (m *memory) keep(h *history, rec *record) {
	m.histories[subjectOf(&rec.about)] = h
	h.records = append(h.records, rec)
	m.count++
	if len(h.records) > keepSubject {
		m.drop(oldest(slices.Values(h.records)))
	}
	if m.count > keepAll {
		m.drop(oldest(m.all()))
	}
}

func (m *memory) drop(rec *record) {
	s := subjectOf(&rec.about)
	h := m.histories[s]
	h.records = slices.DeleteFunc(h.records, func(r *record) bool { return r == rec })
	m.count--
	if len(h.records) == 0 {
		delete(m.histories, s)
	}
}

// all returns all records, in no order.
func (m *memory) all() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for _, h := range m.histories {
			for _, rec := range h.records {
				if !yield(rec) {
					return
				}
			}
		}
	}
}

func oldest(records iter.Seq[*record]) *record {
	var old *record
	for rec := range records {
		if old == nil || byTurn(*rec, *old) < 0 {
			old = rec
		}
	}
	return old
}

// find returns the record of the same event.
func (h *history) find(about *v1.ObjectReference, kind, reason, message string, now time.Time) *record {
	for _, rec := range h.records {
		if rec.message == message && rec.reason == reason && rec.kind == kind && rec.about == *about && rec.gap(now) < repeatWithin {
			return rec
		}
	}
	return nil
}

// similar returns the record that combines an event with many others that differ only in their
// message; nil: a new one. It counts those with no long gap between them, up to now.
func (h *history) similar(about *v1.ObjectReference, kind, reason string, now time.Time) (into *record, combined bool) {
	var alike []*record
	for _, rec := range h.records {
		if rec.reason == reason && rec.kind == kind && rec.about.UID == about.UID {
			alike = append(alike, rec)
		}
	}
	slices.SortFunc(alike, func(a, b *record) int { return byTurn(*b, *a) })
	n := 0
	for _, rec := range alike {
		if rec.gap(now) > similarGap {
			break
		}
		now = rec.last
		if rec.combined {
			return rec, true
		}
		n++
	}
	return nil, n >= similarMost-1
}

func (h *history) bucket(kind string) *bucket {
	b := h.storm[kind]
	if b == nil {
		b = &bucket{left: stormBurst}
		h.storm[kind] = b
	}
	return b
}

// bucket lets a burst through, then one event each interval.
type bucket struct {
	left int
	at   time.Time // when left was true
}

func (b *bucket) take(now time.Time) bool {
	if more := int(now.Sub(b.at) / stormInterval); b.at.IsZero() || b.left+more >= stormBurst {
		b.left, b.at = stormBurst, now
	} else if more > 0 {
		b.left, b.at = b.left+more, b.at.Add(time.Duration(more)*stormInterval)
	}
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}
