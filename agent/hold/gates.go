package hold

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/update"
	"monopod/agent/window"
	"monopod/manifests"
)

// Rules are the settings of it, as they are now.
type Rules struct {
	Windows string        // see window.Parse
	LockMax time.Duration // how long an update waits for its workload's lock at most
}

// Gates says what keeps the agent from changing what runs. The sync loop's goroutine
// owns it.
type Gates struct {
	Store *Store
	Rules func() Rules
	Root  string // the root dir

	Timer *time.Timer // fires when it is to be looked again, while anything waits
	Found chan Looked // which locks are there

	text    string // of windows
	windows window.Windows
	locks   map[manifests.Key]*lock // of pods whose updates wait
	looking bool                    // they are being looked for
	waiting map[manifests.Key]bool  // pods whose updates, removals or first starts wait
}

// lookEvery is how often it is looked, while something waits, whether it still has to.
const lookEvery = 2 * time.Second

// NewGates returns gates that are all open.
func NewGates(root string) *Gates {
	g := &Gates{Root: root, Store: &Store{}, Rules: func() Rules { return Rules{} }, Timer: time.NewTimer(time.Hour),
		Found: make(chan Looked), locks: map[manifests.Key]*lock{}, waiting: map[manifests.Key]bool{}}
	g.Timer.Stop()
	return g
}

// Watch makes Timer fire while something of a pod waits.
func (g *Gates) Watch(key manifests.Key, waits bool) {
	if !waits {
		delete(g.waiting, key)
		return
	}
	if len(g.waiting) == 0 {
		g.Timer.Reset(lookEvery)
	}
	g.waiting[key] = true
}

// Forget forgets a pod of which nothing waits.
func (g *Gates) Forget(key manifests.Key) {
	delete(g.waiting, key)
	delete(g.locks, key)
}

// HasLock reports whether the workload of a pod may lock it while an update waits.
func (g *Gates) HasLock(key manifests.Key) bool { return g.locks[key] != nil }

// Again makes Timer fire again if anything waits.
func (g *Gates) Again() {
	if len(g.waiting) > 0 {
		g.Timer.Reset(lookEvery)
	}
}

// Waiting returns the pods of which something waits.
func (g *Gates) Waiting() []manifests.Key { return slices.Collect(maps.Keys(g.waiting)) }

// lock is the lock of a running version, while an update waits.
type lock struct {
	file  LockFile
	since time.Time // when it was first asked for, or once it was there, first found
	known bool
	holds bool
	held  bool // ever
}

// Update says what an update of the running version of a pod waits for; "": nothing. It is
// not open either until it was looked for the lock of the workload.
func (g *Gates) Update(running *v1.Pod) (why string, open bool) {
	key := manifests.KeyOf(running)
	gate := g.of(key)
	file, ok := lockOf(g.Root, running)
	l := g.locks[key]
	switch {
	case !ok:
		delete(g.locks, key)
		why = gate.Update()
		return why, why == ""
	case l == nil || l.file != file:
		l = &lock{file: file, since: time.Now()}
		g.locks[key] = l
	}
	most := g.Rules().LockMax
	counts := time.Since(l.since) < most
	if counts && l.holds {
		gate.Lock, gate.LockEnds = file.Shown, l.since.Add(most)
	}
	why = gate.Update()
	return why, why == "" && (l.known || !counts)
}

// Removal says what the removal of a pod waits for; "": nothing.
func (g *Gates) Removal(key manifests.Key) string { return g.of(key).Removal() }

// Start says what the first start of a pod waits for; "": nothing.
func (g *Gates) Start() string {
	if h := g.Store.State().Node; h != nil {
		return nodeText(h)
	}
	return ""
}

func nodeText(h *Hold) string { return "the node is " + h.Text() }

func (g *Gates) of(key manifests.Key) update.Gate {
	if text := g.Rules().Windows; text != g.text {
		g.text = text
		g.windows, _ = window.Parse(text) // the settings were checked
	}
	gate, now := update.Gate{Now: time.Now(), Windows: g.windows}, g.Store.State()
	if h, held := now.Held[key.String()]; held {
		gate.Holds = append(gate.Holds, h.Text())
	}
	if now.Node != nil {
		gate.Holds = append(gate.Holds, nodeText(now.Node))
	}
	return gate
}

// Looked is what came of looking for locks.
type Looked struct {
	asked map[manifests.Key]LockFile
	there map[manifests.Key]bool
}

// Look starts a look for the locks of the pods whose updates wait, or for those only that
// were not looked for yet, unless one runs. Its result comes over Found, and must be given
// to Take.
func (g *Gates) Look(ctx context.Context, running *sync.WaitGroup, all bool) {
	asked := map[manifests.Key]LockFile{}
	for key, l := range g.locks {
		if all || !l.known {
			asked[key] = l.file
		}
	}
	if g.looking || len(asked) == 0 {
		return
	}
	g.looking = true
	running.Go(func() {
		select {
		case g.Found <- Looked{asked, lookFor(asked)}:
		case <-ctx.Done():
		}
	})
}

// Take takes over what was found.
func (g *Gates) Take(found Looked) {
	g.looking = false
	for key, file := range found.asked {
		if l := g.locks[key]; l != nil && l.file == file {
			if l.known, l.holds = true, found.there[key]; l.holds && !l.held {
				l.held, l.since = true, time.Now()
			}
		}
	}
}
