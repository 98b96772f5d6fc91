package archives

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"monopod/agent/saidonce"
	"monopod/agent/wake"
	"monopod/cri"
	"monopod/manifests/patient"
)

// Config is what a Keeper works with.
type Config struct {
	Dirs      []string // folders of archives
	Made      string   // the one of them that is made if it is missing; "": none
	Unwatched bool     // the folders are looked at now and then, without events
	Insecure  bool     // other users may write the archives
	Record    string   // the file that records what was imported; "": none
	CRI       *cri.Client
	Up        func() bool // the runtime answers
	// Free returns how many bytes are free where a folder is; nil: not known.
	Free func(dir string) (uint64, error)
	// Importer returns the importer of the runtime; nil: For.
	Importer func(ctx context.Context, c *cri.Client) (Importer, error)
	// Came is called with the full names of images that were imported.
	Came func(ctx context.Context, names []string)
	// Problem reports why an archive, or a folder of such, cannot be used; "": it can.
	Problem func(path, text string)
	Log     *slog.Logger
}

// Keeper imports archives when they appear, one at a time, beside all other work. Its methods may
// be called from any goroutine.
type Keeper struct {
	config Config
	woken  wake.Slot // of the goroutine that imports
	looked chan struct{}
	unsaid saidonce.Error // of the record; of the goroutine that imports

	// Of the goroutine that follows the folders.
	dirs  map[string]string // their problems
	lists patient.Calls[listed]
	reads patient.Calls[readResult]

	mu      sync.Mutex
	all     map[string]*entry // by path
	changed chan struct{}     // closed and made again with each change of a state
	wanted  map[string]int    // how many pods wait for an image, by full name
	watches map[*watch]bool
	record  record
	unsaved bool // record has what is not on disk
}

// entry is one archive. Keeper.mu guards it.
type entry struct {
	Known
	sig       signature
	disk      string    // the file system of its folder; "": not known
	found     bool      // by this agent; else it is known of the record
	unchanged time.Time // since when sig is this one
	checked   time.Time // when the runtime was last seen to have its images
	failures  int       // reads or imports that failed in a row
	retry     time.Time // of a broken one that is read or imported again; zero: only another version helps
}

// watch calls do once an archive is known to have an image.
type watch struct {
	name string
	do   func()
}

// New returns a Keeper.
func New(c Config) *Keeper {
	if c.Importer == nil {
		c.Importer = For
	}
	r, err := loadRecord(c.Record)
	if err != nil {
		c.Log.Warn("which archives were imported is not known any more: they are read again", "err", err)
	}
	return &Keeper{config: c, woken: wake.New(), looked: make(chan struct{}), dirs: map[string]string{},
		lists: patient.Calls[listed]{Most: openCalls}, reads: patient.Calls[readResult]{Most: openCalls}, all: r.entries(time.Now()), changed: make(chan struct{}),
		wanted: map[string]int{}, watches: map[*watch]bool{}, record: r}
}

// openCalls is how many folders, and archives, may have a file system that does not answer.
const openCalls = 8

// Run follows the folders and imports until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { k.follow(ctx) })
	parts.Go(func() { k.importAll(ctx) })
	parts.Wait()
}

// List returns all archives, by path; a nil Keeper has none.
func (k *Keeper) List() []Known {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Known
	for _, path := range slices.Sorted(maps.Keys(k.all)) {
		all = append(all, k.all[path].Known)
	}
	return all
}

// Given returns the archives that have images, by the images' full names.
func (k *Keeper) Given() map[string]string {
	given := map[string]string{}
	for _, a := range k.List() {
		for _, i := range a.Index.Images {
			given[i.Name] = a.Path
		}
	}
	return given
}

// Pending returns the archive that is going to give an image; "": none is, as far as is known.
func (k *Keeper) Pending(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.pending(full(name)); e != nil {
		return e.Path
	}
	return ""
}

// pending returns the archive that is going to give an image. The caller holds mu.
func (k *Keeper) pending(full string) *entry {
	for _, e := range k.all {
		if (e.State == Due || e.State == Importing) && e.names(full) {
			return e
		}
	}
	return nil
}

// firstLook bounds how long an image that is missing waits until archives are known.
const firstLook = 2 * time.Second

// Await is called for an image that the runtime lacks. It waits until no archive is going to give
// it, and reports whether it has waited for one.
func (k *Keeper) Await(ctx context.Context, name string) (waited bool) {
	name = full(name)
	k.want(name, 1)
	defer k.want(name, -1)
	k.awaitLook(ctx)
	k.doubt(name)
	for ctx.Err() == nil {
		k.mu.Lock()
		changed, is := k.changed, k.pending(name)
		k.mu.Unlock()
		if is == nil {
			return waited
		}
		waited = true
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return waited
}

func (k *Keeper) awaitLook(ctx context.Context) {
	late := time.NewTimer(firstLook)
	defer late.Stop()
	select {
	case <-k.looked:
	case <-late.C:
	case <-ctx.Done():
	}
}

// want counts who waits for an image: its archive is imported first.
func (k *Keeper) want(name string, more int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted[name] += more
	if k.wanted[name] == 0 {
		delete(k.wanted, name)
	}
}

// doubt has the archives of an image that is missing imported again.
func (k *Keeper) doubt(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.all {
		if e.State == Imported && e.names(name) {
			k.set(e, Due)
		}
	}
}

// OnFound calls do, once, when an archive is found to have an image, until stop is called.
func (k *Keeper) OnFound(name string, do func()) (stop func()) {
	w := &watch{full(name), do}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watches[w] = true
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.watches, w)
	}
}

// set changes the state of an archive. The caller holds mu.
func (k *Keeper) set(e *entry, s State) {
	e.State = s
	close(k.changed)
	k.changed = make(chan struct{})
	if s == Due {
		k.woken.Wake()
	}
}

// fail records why an archive cannot be used. The caller holds mu.
func (k *Keeper) fail(e *entry, err error) {
	why := err.Error()
	if e.Why != why {
		k.config.Log.Warn("archive of images not imported", "archive", e.Path, "reason", "ImageArchiveBroken", "err", err)
		k.config.Problem(e.Path, fmt.Sprintf("archive of images %s: %s", e.Path, why))
	}
	e.Why = why
	k.set(e, Broken)
}

// mend records that an archive can be used. The caller holds mu.
func (k *Keeper) mend(e *entry) {
	if e.Why != "" {
		k.config.Problem(e.Path, "")
	}
	e.Why, e.failures, e.retry = "", 0, time.Time{}
}

// arch is the machine's.
const arch = runtime.GOARCH
