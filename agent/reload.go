package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"monopod/agent/config"
	"monopod/agent/image"
	"monopod/agent/logs"
	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/decode"
)

// Reread configures how settings are read again while the agent runs.
type Reread struct {
	File string // the settings file, which is watched; "": none
	// Read returns the settings as a restart would read them.
	Read func() (config.Config, []decode.Problem, error)
	Ask  <-chan os.Signal // requests to read it; a change of the file is one, too
}

// liveSettings are the settings that take effect at once, each with the parts that
// must be told. The other parts read a setting each time they need it.
var liveSettings = []struct {
	settings []string
	tell     func(r *reloader, c config.Config)
}{
	{[]string{"logLevel"}, func(r *reloader, c config.Config) { r.level.Set(c.Level()) }},
	{[]string{"containerLogMaxSize", "containerLogMaxFiles", "containerLogMonitorInterval", "containerLogMaxWorkers"},
		func(r *reloader, c config.Config) { r.logs(settingsOfLogs(c)) }},
	{[]string{"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMinimumGCAge", "imageMaximumGCAge"},
		func(r *reloader, c config.Config) { r.images(limitsOfImages(c)) }},
	{[]string{"registryPullQPS", "registryBurst"}, func(r *reloader, c config.Config) { r.rate(c.PullQPS, c.PullBurst) }},
	{[]string{"crashLoopBackOff.firstContainerRestartPeriod", "crashLoopBackOff.maxContainerRestartPeriod"}, func(r *reloader, _ config.Config) { r.pods() }},
	{[]string{"deadContainersPerContainer", "keepTerminatedPodVolumes"}, func(r *reloader, _ config.Config) { r.pods() }},
	{[]string{"podHosts"}, func(r *reloader, _ config.Config) { r.hosts() }},
	{[]string{"nodeLabels"}, func(r *reloader, _ config.Config) { r.pods(); r.node() }},
	{[]string{"maxPods", "podsPerCore"}, func(r *reloader, _ config.Config) { r.pods(); r.node() }},
}

// reloader applies settings that change while the agent runs. Its goroutine owns all
// fields but live, which only it writes.
type reloader struct {
	from  Reread
	live  *atomic.Pointer[config.Config]
	store *status.Store
	log   *slog.Logger

	// The parts that do not read their settings each time.
	level   *slog.LevelVar
	logs    func(logs.Config)
	images  func(image.Limits)
	rate    func(qps, burst int)
	pods    func()               // wakes all workers
	node    func()               // reports the node again
	hosts   func()               // writes the pods' hosts files again
	telling func() (done func()) // tells the service manager that settings are read

	data []byte // content of the file at the last read
}

// newReloader wires the parts that take live settings; nil: settings are read once.
func (a *Agent) newReloader(o Options) *reloader {
	if o.Reread == nil {
		return nil
	}
	from := *o.Reread
	if abs, err := filepath.Abs(from.File); err == nil && from.File != "" { // the path that is watched
		from.File = abs
	}
	return &reloader{from: from, live: &a.live, store: a.store, log: a.log, level: cmp.Or(o.Level, &slog.LevelVar{}),
		logs: a.rotator.Set, images: a.images.SetBounds,
		rate: a.workers.Images.SetRate, pods: a.sync.Wake, node: a.node.Wake, hosts: a.hosts.Wake, telling: a.notify.Reloading}
}

// read reads the settings and applies the live ones. first: it logs nothing if
// nothing changed.
func (r *reloader) read(first bool) {
	next, warnings, err := r.from.Read()
	if err == nil {
		next, err = complete(next, nil)
	}
	if err != nil {
		r.log.Error("settings refused; the previous ones stay in effect", "file", r.from.File, "err", strings.ReplaceAll(err.Error(), "\n", "; "))
		r.store.SetSettings(r.problems(err))
		return
	}
	if !first {
		for _, w := range warnings {
			r.log.Warn("setting has no effect", "err", w)
		}
	}
	r.take(next, first)
}

// take applies the live settings of next, and logs which ones changed.
func (r *reloader) take(next config.Config, first bool) {
	counts, later := config.Changed(*r.live.Load(), next)
	now := r.live.Load().TakeLive(next)
	r.live.Store(&now)
	for _, t := range liveSettings {
		if slices.ContainsFunc(t.settings, func(name string) bool { return slices.Contains(counts, name) }) {
			t.tell(r, now)
		}
	}
	if len(counts) > 0 {
		r.log.Info("settings applied", "file", r.from.File, "settings", strings.Join(counts, ", "))
	} else if len(later) == 0 && !first {
		r.log.Info("settings read again; nothing changed", "file", r.from.File)
	}
	var problems []status.Problem
	if len(later) > 0 {
		r.log.Warn("settings changed that take effect after a restart of monopod", "file", r.from.File, "settings", strings.Join(later, ", "))
		problems = []status.Problem{{File: r.from.File, Warning: true,
			Message: "settings changed that take effect after a restart of monopod: " + strings.Join(later, ", ")}}
	}
	r.store.SetSettings(problems)
}

// problems returns the problems of the file, one for each joined error.
func (r *reloader) problems(err error) []status.Problem {
	var all []status.Problem
	list := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		list = many.Unwrap()
	}
	for _, e := range list {
		var p decode.Problem
		if !errors.As(e, &p) {
			p = decode.Problem{File: r.from.File, Message: e.Error()}
		}
		all = append(all, p)
	}
	return all
}

// run reads the settings at each request and at each change of their file, until ctx
// ends.
func (r *reloader) run(ctx context.Context) {
	w := config.WatchFile(r.from.File)
	defer w.Close()
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
		case <-w.Changed():
			if data, err := manifests.ReadFile(r.from.File); err != nil || string(data) != string(r.data) {
				r.data = data
				r.read(false)
			}
		}
	}
}

func (r *reloader) asked() {
	defer r.telling()()
	if r.from.File == "" {
		r.log.Info("no --config file to read again")
		return
	}
	r.data, _ = manifests.ReadFile(r.from.File)
	r.read(false)
}
