// Package reload applies settings that change while the agent runs.
package reload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"monopod/agent/config"
	"monopod/agent/image"
	"monopod/agent/logrotate"
	"monopod/agent/settings"
	"monopod/agent/status"
	"monopod/agent/wake"
	"monopod/manifests"
	"monopod/manifests/decode"
	"monopod/manifests/patient"
)

// Reread configures how settings are read again while the agent runs.
type Reread struct {
	File string // the settings file, which is watched; "": none
	// Read returns the settings as a restart would read them.
	Read func() (config.Config, []decode.Problem, error)
	Ask  <-chan os.Signal // requests to read it; a change of the file is one, too
}

// liveSettings are the settings that take effect at once, each with the parts that must be
// notified. The other parts read a setting each time they need it.
var liveSettings = []struct {
	settings []string
	notify   func(r *Reloader, c config.Config)
}{
	{[]string{"logLevel"}, func(r *Reloader, c config.Config) { r.Level.Set(c.Level()) }},
	{[]string{"containerLogMaxSize", "containerLogMaxFiles", "containerLogMonitorInterval", "containerLogMaxWorkers"},
		func(r *Reloader, c config.Config) { r.Logs(settings.Logs(c)) }},
	{[]string{"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMinimumGCAge", "imageMaximumGCAge"},
		func(r *Reloader, c config.Config) { r.Images(settings.Images(c)) }},
	{[]string{"registryPullQPS", "registryBurst"}, func(r *Reloader, c config.Config) { r.Rate(c.PullQPS, c.PullBurst) }},
	{[]string{"crashLoopBackOff.firstContainerRestartPeriod", "crashLoopBackOff.maxContainerRestartPeriod"}, func(r *Reloader, _ config.Config) { r.Pods() }},
	{[]string{"deadContainersPerContainer", "keepTerminatedPodVolumes"}, func(r *Reloader, _ config.Config) { r.Pods() }},
	{[]string{"updateStrategy", "updatePolicy", "updateWindow", "updateLockMax", "updateHealth", "updateStable", "followImages"}, func(r *Reloader, _ config.Config) { r.Pods() }},
	{[]string{"followResolvConf"}, func(r *Reloader, _ config.Config) { r.Resolv() }},
	{[]string{"podHosts"}, func(r *Reloader, _ config.Config) { r.Hosts() }},
	{[]string{"nodeLabels"}, func(r *Reloader, _ config.Config) { r.Pods(); r.Node() }},
	{[]string{"maxPods", "podsPerCore"}, func(r *Reloader, _ config.Config) { r.Pods(); r.Node() }},
}

// Reloader applies settings that change while the agent runs. Its goroutine owns all
// fields but live, which only it writes.
type Reloader struct {
	From  Reread
	Live  *atomic.Pointer[config.Config]
	Store *status.Store
	Log   *slog.Logger

	// The parts that do not read their settings each time.
	Level   *slog.LevelVar
	Logs    func(logrotate.Config)
	Images  func(image.Limits)
	Rate    func(qps, burst int)
	Pods    func()               // wakes all workers
	Node    func()               // reports the node again
	Hosts   func()               // writes the pods' hosts files again
	Resolv  func()               // has pods follow the machine's name servers, or not any more
	Telling func() (done func()) // notifies the service manager that settings are read

	data  []byte // content of the file at the last read
	calls patient.Calls[reading]

	written time.Time   // when the file changed last
	again   *time.Timer // for the next look at a file that is being written
}

const (
	// lookAgain is how long after a look at a file that is being written the next one is.
	lookAgain = 200 * time.Millisecond
	// noWriter is how long a file must stay unchanged to be read though it may have a writer: NFSv4
	// and CIFS say so of every file.
	noWriter = 3 * time.Second
)

// patience is how long a read of the settings file may take; its file system may never answer.
const patience = 10 * time.Second

// reading is the result of one read of the settings.
type reading struct {
	data     []byte // of the file
	isOpen   bool   // a program has it open for writing: data may be a part of what it will be
	next     config.Config
	warnings []decode.Problem
	err      error // why they cannot be used
	isOver   bool  // the agent ends, and nothing waited for the answer
}

// look reads the settings. It may hang, and uses nothing that changes.
func (r *Reloader) look() (got reading) {
	if r.From.File != "" {
		got.isOpen = manifests.HasWriter(r.From.File)
		got.data, _ = manifests.ReadFile(r.From.File)
	}
	got.next, got.warnings, got.err = r.From.Read()
	got.isOpen = got.isOpen || r.From.File != "" && manifests.HasWriter(r.From.File) // since then
	if got.err == nil {
		got.next, got.err = settings.Complete(got.next, false)
	}
	if got.err == nil {
		got.err = settings.Check(got.next) // a restart would refuse it
	}
	return got
}

// ask reads the settings until stop is closed. It ignores a late answer to a former request: the
// file may have changed since.
func (r *Reloader) ask(stop <-chan struct{}) reading {
	r.calls.Most = 1
	r.calls.Keep(nil)
	got, err := r.calls.Ask("", patience, stop, r.look)
	if err != nil {
		got.err = fmt.Errorf("read settings %s: %w", r.From.File, err)
		got.isOver = isClosed(stop)
	}
	return got
}

func isClosed(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// apply applies the live settings of what was read. first: it logs nothing if
// nothing changed.
func (r *Reloader) apply(got reading, first bool) {
	if got.isOver {
		return
	}
	r.data = got.data
	if err := got.err; err != nil {
		r.Log.Error("settings refused; the previous ones stay in effect", "file", r.From.File, "err", strings.ReplaceAll(err.Error(), "\n", "; "))
		r.Store.SetSettings(r.problems(err))
		return
	}
	if !first {
		for _, w := range got.warnings {
			r.Log.Warn("setting has no effect", "err", w)
		}
	}
	r.take(got.next, first)
}

// take applies the live settings of next, and logs which ones changed.
func (r *Reloader) take(next config.Config, first bool) {
	counts, later := config.Changed(*r.Live.Load(), next)
	now := r.Live.Load().TakeLive(next)
	r.Live.Store(&now)
	for _, t := range liveSettings {
		if slices.ContainsFunc(t.settings, func(name string) bool { return slices.Contains(counts, name) }) {
			t.notify(r, now)
		}
	}
	if len(counts) > 0 {
		r.Log.Info("settings applied", "file", r.From.File, "settings", strings.Join(counts, ", "))
	} else if len(later) == 0 && !first {
		r.Log.Info("settings read again; nothing changed", "file", r.From.File)
	}
	problems := slices.Clone(next.Absent)
	if len(problems) > 0 {
		r.Log.Error("settings ask for what does not exist here", "file", r.From.File, "err", strings.ReplaceAll(settings.Lines(problems), "\n", "; "))
	}
	if len(later) > 0 {
		r.Log.Warn("settings changed that take effect after a restart of monopod", "file", r.From.File, "settings", strings.Join(later, ", "))
		problems = append(problems, status.Problem{File: r.From.File, Warning: true,
			Message: "settings changed that take effect after a restart of monopod: " + strings.Join(later, ", ")})
	}
	r.Store.SetSettings(problems)
}

// problems returns the problems of the file, one for each joined error.
func (r *Reloader) problems(err error) []status.Problem {
	var all []status.Problem
	list := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		list = many.Unwrap()
	}
	for _, e := range list {
		var p decode.Problem
		if !errors.As(e, &p) {
			p = decode.Problem{File: r.From.File, Message: e.Error()}
		}
		all = append(all, p)
	}
	return all
}

// Run reads the settings at each request and at each change of their file, until ctx
// ends.
func (r *Reloader) Run(ctx context.Context) {
	w := config.WatchFile(r.From.File)
	defer w.Close()
	r.again = time.NewTimer(time.Hour)
	r.again.Stop()
	late := wake.New()
	r.calls.Late = late.Wake
	if r.From.File != "" {
		r.apply(r.ask(ctx.Done()), true) // it may have changed since it was read for the start
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.From.Ask:
			r.onRequest(ctx.Done())
		case <-late:
			r.apply(r.ask(ctx.Done()), false)
		case <-w.Changed():
			r.written = time.Now()
			r.onChange(ctx.Done())
		case <-r.again.C:
			r.onChange(ctx.Done())
		}
	}
}

// onChange reads a file that changed, once its writer has closed it: the settings that it does not have
// yet are no defaults.
func (r *Reloader) onChange(stop <-chan struct{}) {
	got := r.ask(stop)
	switch {
	case got.isOpen && time.Since(r.written) < noWriter:
		r.again.Reset(lookAgain)
	case got.data == nil || string(got.data) != string(r.data):
		r.apply(got, false)
	}
}

func (r *Reloader) onRequest(stop <-chan struct{}) {
	defer r.Telling()()
	if r.From.File == "" {
		r.Log.Info("no --config file to read again")
		return
	}
	r.apply(r.ask(stop), false)
}
