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

// Reread says how settings are read again while the agent runs.
type Reread struct {
	File string // of settings; it is watched. "": there is none
	// Read returns the settings as they would count after a new start.
	Read func() (config.Config, []decode.Problem, error)
	Ask  <-chan os.Signal // somebody asks for it; the file is read, too, when it changes
}

// liveSettings are those that count at once, and who must be told of them. What
// the others need of a setting they read each time.
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
	{[]string{"deadContainersPerContainer"}, func(r *reloader, _ config.Config) { r.pods() }},
	{[]string{"nodeLabels"}, func(r *reloader, _ config.Config) { r.pods(); r.node() }},
	{[]string{"maxPods", "podsPerCore"}, func(r *reloader, _ config.Config) { r.pods(); r.node() }},
}

// reloader makes settings count that change while the agent runs. Its goroutine
// owns all but live, which only it writes.
type reloader struct {
	from  Reread
	live  *atomic.Pointer[config.Config]
	store *status.Store
	log   *slog.Logger

	// Where settings go that nobody reads each time.
	level  *slog.LevelVar
	logs   func(logs.Config)
	images func(image.Limits)
	rate   func(qps, burst int)
	pods   func() // they are looked at again
	node   func() // it is reported anew

	data []byte // of the file, as last read
}

// newReloader wires who settings go to; nil: they are read once.
func (a *Agent) newReloader(o Options) *reloader {
	if o.Reread == nil {
		return nil
	}
	from := *o.Reread
	if abs, err := filepath.Abs(from.File); err == nil && from.File != "" { // as it is watched
		from.File = abs
	}
	return &reloader{from: from, live: &a.live, store: a.store, log: a.log, level: cmp.Or(o.Level, &slog.LevelVar{}),
		logs: a.rotator.Set, images: a.images.SetBounds,
		rate: a.workers.Images.SetRate, pods: a.sync.Wake, node: a.node.Wake}
}

// read reads the settings and makes count what can. first: nothing is said
// where nothing changed.
func (r *reloader) read(first bool) {
	next, warnings, err := r.from.Read()
	if err == nil {
		next, err = complete(next, nil)
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

// problems returns what is wrong with the file, one for each line of err.
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

// run reads the settings whenever somebody asks or their file changes, until
// ctx ends.
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
	if r.from.File == "" {
		r.log.Info("there is no --config file to read again")
		return
	}
	r.data, _ = manifests.ReadFile(r.from.File)
	r.read(false)
}
