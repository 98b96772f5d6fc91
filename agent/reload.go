package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"monopod/agent/logs"
	"monopod/agent/status"
	"monopod/manifests"
)

// Reread says how settings are read again while the agent runs.
type Reread struct {
	File string // of settings; it is watched. "": there is none
	// Read returns the settings as they would count after a new start.
	Read func() (Config, []manifests.Problem, error)
	Ask  <-chan os.Signal // somebody asks for it; the file is read, too, when it changes
}

// liveSettings are those that count at once. The others count after a new start.
var liveSettings = []struct {
	fields []string
	take   func(to *Config, from Config)
	apply  func(r *reloader, c Config) // nil: who needs it reads it each time
}{
	{[]string{"logLevel"}, func(to *Config, from Config) { to.LogLevel = from.LogLevel },
		func(r *reloader, c Config) { r.level.Set(c.LogLevel) }},
	{[]string{"containerLogMaxSize", "containerLogMaxFiles", "containerLogMonitorInterval", "containerLogMaxWorkers"},
		func(to *Config, from Config) { to.Logs = from.Logs },
		func(r *reloader, c Config) { r.logs(c.Logs) }},
	{[]string{"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMinimumGCAge", "imageMaximumGCAge"},
		func(to *Config, from Config) { to.Images.Collect = from.Images.Collect },
		func(r *reloader, c Config) { r.images(c.Images) }},
	{[]string{"registryPullQPS", "registryBurst"},
		func(to *Config, from Config) { to.Images.QPS, to.Images.Burst = from.Images.QPS, from.Images.Burst },
		func(r *reloader, c Config) { r.rate(c.Images.QPS, c.Images.Burst) }},
	{[]string{"crashLoopBackOff.firstContainerRestartPeriod", "crashLoopBackOff.maxContainerRestartPeriod"},
		func(to *Config, from Config) { to.BackOff = from.BackOff }, func(r *reloader, _ Config) { r.pods() }},
	{[]string{"deadContainersPerContainer"},
		func(to *Config, from Config) { to.DeadContainers = from.DeadContainers }, func(r *reloader, _ Config) { r.pods() }},
	{[]string{"nodeLabels"},
		func(to *Config, from Config) { to.NodeLabels = from.NodeLabels }, func(r *reloader, _ Config) { r.pods(); r.node() }},
	{[]string{"maxPods", "podsPerCore"},
		func(to *Config, from Config) { to.MaxPods, to.PodsPerCore = from.MaxPods, from.PodsPerCore }, func(r *reloader, _ Config) { r.pods(); r.node() }},
}

// reloader makes settings count that change while the agent runs. Its goroutine
// owns all but live, which only it writes.
type reloader struct {
	from  Reread
	live  *atomic.Pointer[Config]
	store *status.Store
	log   *slog.Logger

	// Where settings go that nobody reads each time.
	level  *slog.LevelVar
	logs   func(logs.Config)
	images func(ImageConfig)
	rate   func(qps, burst int)
	pods   func() // they are looked at again
	node   func() // it is reported anew

	data []byte // of the file, as last read
}

// newReloader wires who settings go to; nil: they are read once.
func (a *Agent) newReloader(m *machine) *reloader {
	if a.cfg.Reread == nil {
		return nil
	}
	from := *a.cfg.Reread
	if abs, err := filepath.Abs(from.File); err == nil && from.File != "" { // as it is watched
		from.File = abs
	}
	r := &reloader{from: from, live: m.live, store: a.store, log: a.log, level: a.cfg.Level,
		logs: a.rotator.Set, images: func(c ImageConfig) { a.images.SetBounds(c.Collect) },
		rate: a.workers.images.SetRate, pods: a.sync.LookAgain, node: a.node.lookAgain}
	if r.level == nil {
		r.level = &slog.LevelVar{}
	}
	return r
}

// read reads the settings and makes count what can. first: nothing is said
// where nothing changed.
func (r *reloader) read(first bool) {
	next, warnings, err := r.from.Read()
	if err == nil {
		next.Log = r.log
		next, err = next.complete()
	}
	if err != nil {
		r.log.Error("settings make no sense; the former ones stay", "file", r.from.File, "err", strings.ReplaceAll(err.Error(), "\n", "; "))
		r.store.SetSettings(r.problems(err))
		return
	}
	if !first {
		for _, w := range warnings {
			r.log.Warn("a setting does not count", "err", w)
		}
	}
	r.take(next, first)
}

// take makes count what it can of the next settings, and says what that is.
func (r *reloader) take(next Config, first bool) {
	now := *r.live.Load()
	differ := changed(now, next)
	var counts, later []string
	for _, s := range liveSettings {
		if slices.ContainsFunc(differ, func(name string) bool { return slices.Contains(s.fields, name) }) {
			s.take(&now, next)
		}
	}
	r.live.Store(&now)
	for _, s := range liveSettings {
		mine := slices.DeleteFunc(slices.Clone(differ), func(name string) bool { return !slices.Contains(s.fields, name) })
		if counts = append(counts, mine...); len(mine) > 0 {
			s.apply(r, now)
		}
	}
	for _, name := range differ {
		if !slices.Contains(counts, name) {
			later = append(later, name)
		}
	}
	if len(counts) > 0 {
		r.log.Info("these settings changed and count now", "file", r.from.File, "settings", strings.Join(counts, ", "))
	} else if len(later) == 0 && !first {
		r.log.Info("settings were read again and are what they were", "file", r.from.File)
	}
	var problems []status.Problem
	if len(later) > 0 {
		r.log.Warn("these settings changed and count after a restart of monopod", "file", r.from.File, "settings", strings.Join(later, ", "))
		problems = []status.Problem{{File: r.from.File, Warning: true,
			Message: "these settings changed and count after a restart of monopod: " + strings.Join(later, ", ")}}
	}
	r.store.SetSettings(problems)
}

// changed returns the names of the settings that differ, in the order of a file.
func changed(a, b Config) []string {
	was, is := a.fields(), b.fields()
	var names []string
	for _, row := range configRows() {
		if !reflect.DeepEqual(was[row.name], is[row.name]) {
			names = append(names, row.name)
		}
	}
	return names
}

// problems returns what is wrong with the file, one for each line of err.
func (r *reloader) problems(err error) []status.Problem {
	var all []status.Problem
	list := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		list = many.Unwrap()
	}
	for _, e := range list {
		var p manifests.Problem
		if !errors.As(e, &p) {
			p = manifests.Problem{File: r.from.File, Message: e.Error()}
		}
		all = append(all, status.Problem(p))
	}
	return all
}

// reloadSettle is how long a file must be left alone before it is read.
const reloadSettle = 200 * time.Millisecond

// run reads the settings whenever somebody asks or their file changes, until
// ctx ends.
func (r *reloader) run(ctx context.Context) {
	w := watchFile(r.from.File)
	defer w.close()
	r.data, _ = manifests.ReadFile(r.from.File)
	if r.from.File != "" {
		r.read(true) // it may have changed since it was read for the start
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.from.Ask:
			r.asked()
		case <-w.changed():
			if data, err := manifests.ReadFile(r.from.File); err != nil || string(data) != string(r.data) {
				r.data = data
				r.read(false)
			}
		}
	}
}

func (r *reloader) asked() {
	if r.from.File == "" {
		r.log.Info("there is no --config file to read again")
		return
	}
	r.data, _ = manifests.ReadFile(r.from.File)
	r.read(false)
}
