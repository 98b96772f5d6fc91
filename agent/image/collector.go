package image

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"monopod/agent/saidonce"
	"monopod/agent/wake"
	"monopod/cri"
)

// Limits are when images are collected. Zero values mean the default given, which is the
// kubelet's.
type Limits struct {
	High   int           // percent of the disk: from then on unused images are removed; default 85, 100: never
	Low    int           // until so many percent are left; default 80
	MinAge time.Duration // an image first seen less long ago stays; default 2 min
	MaxAge time.Duration // an image unused for longer is removed even if there is room; default: never
	Every  time.Duration // default 5 min
}

// Defaults of Limits.
const (
	DefaultHigh   = 85
	DefaultLow    = 80
	DefaultMinAge = 2 * time.Minute
)

// Complete returns the limits with defaults filled in.
func (l Limits) Complete() Limits {
	for to, fallback := range map[*int]int{&l.High: DefaultHigh, &l.Low: DefaultLow} {
		if *to == 0 {
			*to = fallback
		}
	}
	for to, fallback := range map[*time.Duration]time.Duration{&l.MinAge: DefaultMinAge, &l.Every: 5 * time.Minute} {
		if *to == 0 {
			*to = fallback
		}
	}
	return l
}

// Need is an image that must stay because a pod names it.
type Need struct {
	Image string // as in the manifest
	Pod   string // namespace/name
}

// CollectorConfig is what a Collector works with.
type CollectorConfig struct {
	CRI    *cri.Client
	Limits Limits
	// Needs returns all images that pods name, false while that is not known.
	Needs func() ([]Need, bool)
	// Archived returns the archives that have images, by the full names of the images: these stay; nil:
	// there are none.
	Archived func() map[string]string
	// History is the file that records when images were used; "" for none.
	History string
	// ClockSet reports whether a clock with this time was set; nil: each was.
	ClockSet func(time.Time) bool
	// Statfs returns the bytes of a file system and those that are free.
	Statfs func(dir string) (capacity, available uint64, err error)
	Log    *slog.Logger
	// Event is called for problems, in the kubelet's words; it may be nil.
	Event func(reason, message string)
	// Collected is called with why an image was removed, see ForAge; it may be
	// nil.
	Collected func(reason string)
}

// Why an image was removed.
const (
	ForAge   = "age"
	ForSpace = "space"

	ForRequest = "request"
)

// Collector removes unused images when the disk fills up, or when they were not
// used for long. Any goroutine may call its methods.
type Collector struct {
	config CollectorConfig
	limits atomic.Pointer[Limits]
	woken  wake.Slot
	since  time.Time      // when it was made
	turn   sync.Mutex     // one collection at a time
	unkept saidonce.Error // why the history is not on disk; under turn

	mu      sync.Mutex
	history history
	short   Shortfall
	last    string // the error of the last collection
	logged  bool   // it was logged
}

// Shortfall is how much fuller the disk is than it should be, with nothing left to collect.
type Shortfall struct {
	Since time.Time `json:"since"` // zero: there is none
	Bytes uint64    `json:"bytes"` // bytes that are missing
}

// NewCollector returns a Collector that continues the recorded History.
func NewCollector(cfg CollectorConfig) *Collector {
	if cfg.Event == nil {
		cfg.Event = func(_, _ string) {}
	}
	if cfg.Archived == nil {
		cfg.Archived = func() map[string]string { return nil }
	}
	if cfg.ClockSet == nil {
		cfg.ClockSet = func(time.Time) bool { return true }
	}
	c := &Collector{config: cfg, woken: wake.New(), since: time.Now()}
	limits := cfg.Limits.Complete()
	c.limits.Store(&limits)
	c.history = loadHistory(cfg, c.since)
	return c
}

// Bounds returns the limits in force.
func (c *Collector) Bounds() Limits { return *c.limits.Load() }

// SetBounds changes the limits but Every, and makes Run apply them now.
func (c *Collector) SetBounds(l Limits) {
	l = l.Complete()
	c.limits.Store(&l)
	c.Wake()
}

// Wake makes Run collect now.
func (c *Collector) Wake() { c.woken.Wake() }

// Run collects every Every until ctx ends, the first time when it is woken.
func (c *Collector) Run(ctx context.Context) {
	tick := time.NewTicker(c.Bounds().Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.woken:
		}
		c.logError(ctx, c.Collect(ctx))
	}
}

// logError logs an error that occurs twice in a row: a runtime that has just started knows little.
func (c *Collector) logError(ctx context.Context, err error) {
	if ctx.Err() != nil || cri.Unavailable(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == "" || text != c.last {
		c.last, c.logged = text, false
		return
	}
	if !c.logged {
		c.logged = true
		c.config.Log.Warn("image garbage collection failed", "reason", "ImageGCFailed", "err", err)
		c.config.Event("ImageGCFailed", err.Error())
	}
}

// Shortfall returns what the last collection could not free.
func (c *Collector) Shortfall() Shortfall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.short
}

// Disk is the file system that holds the images.
type Disk struct {
	Dir                 string
	Capacity, Available uint64 // bytes
}

// Used returns how full the disk is, in percent, as a kubelet counts.
func (d Disk) Used() int { return 100 - int(d.Available*100/d.Capacity) }

// missing returns how many bytes must be freed until only so many percent are used.
func (d Disk) missing(percent int) uint64 {
	want := d.Capacity / 100 * uint64(100-percent)
	return want - min(d.Available, want)
}

func (c *Collector) disk(ctx context.Context) (Disk, error) {
	dir, err := c.config.CRI.ImageDir(ctx)
	if err != nil {
		return Disk{}, err
	}
	if dir == "" {
		return Disk{}, fmt.Errorf("the runtime does not say where its images are")
	}
	d := Disk{Dir: dir}
	if d.Capacity, d.Available, err = c.config.Statfs(dir); err == nil && d.Capacity == 0 {
		err = fmt.Errorf("it has no capacity")
	}
	if err != nil {
		return Disk{}, fmt.Errorf("disk of the images at %s: %w", dir, err)
	}
	return d, nil
}
