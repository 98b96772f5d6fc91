// Package managed starts and supervises a containerd of monopod's own.
package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"monopod/agent/backoff"
	"monopod/agent/disk"
	"monopod/cri"
)

// Folder is where the root dir of an agent has the runtime and all that it keeps.
const Folder = "containerd"

// Settings are what an agent wants of its runtime.
type Settings struct {
	Root    string // the agent's root dir
	Systemd bool   // systemd makes the cgroups of pods
	Service bool   // systemd starts it, as a service of its own
	Resolv  string // the file with the machine's name servers for pods; "": there is none
	Log     *slog.Logger
	// Trouble is called with what is wrong, and with "" once nothing is. It may be nil.
	Trouble func(text string)
	// Restarted is called when it had died and is started again. It may be nil.
	Restarted func()
}

// Runtime is the containerd of one root dir. Start, Run and Remove are called one after the other,
// the rest at any time.
type Runtime struct {
	settings Settings
	dir      string
	binary   string
	name     string // with the version that New found
	version  Version
	network  network
	toml     string        // its settings, which are written when it starts
	changed  bool          // they are others than those it was started with
	process  *process      // nil: none was started or taken over, or it has ended
	patience time.Duration // with its next start; 0: startPatience

	tried chan struct{} // closed after the first try to start it
	first sync.Once     // closes it
}

// New returns the runtime of a root dir. It starts nothing.
func New(s Settings) (*Runtime, error) {
	root, err := resolved(s.Root)
	if err != nil {
		return nil, err
	}
	r := &Runtime{settings: s, dir: filepath.Join(root, Folder), tried: make(chan struct{})}
	if err := checkSocket(r.socket()); err != nil {
		return nil, err
	}
	if strings.ContainsAny(r.dir, "\"\\\n") {
		return nil, fmt.Errorf("folder %q: containerd's settings cannot name it; choose another with --root, or for once --dir or TMPDIR", r.dir)
	}
	if r.binary, err = exec.LookPath("containerd"); err != nil {
		return nil, ErrNoBinary
	}
	if r.binary, err = filepath.Abs(r.binary); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("runc"); err != nil {
		return nil, errors.New("there is containerd and no runc in PATH, which starts its containers: apt-get install runc")
	}
	if r.version, err = versionOf(r.binary); err != nil {
		return nil, err
	}
	r.name = nameOf(r.version, r.binary)
	r.network = findNetwork(r.dir, s.Service)
	r.network.servers = s.Resolv
	_, err = dialectOf(r.version)
	return r, err
}

// resolved returns a path without links, as the kernel names mounts: the last folder need not exist.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	return path, nil
}

// ErrNoBinary is the error where there is no containerd to start.
var ErrNoBinary = errors.New("there is no containerd in PATH: apt-get install containerd containernetworking-plugins")

// ErrTwo is the error of settings that want two runtimes.
var ErrTwo = errors.New("--managed-runtime and --runtime-endpoint exclude each other: leave one out")

// longestSocket is the longest path of a unix socket, see unix(7).
const longestSocket = 107

// checkSocket refuses a path that is too long with what containerd appends to it.
func checkSocket(path string) error {
	if n := len(path + ".ttrpc"); n > longestSocket {
		return fmt.Errorf("the socket %s.ttrpc has %d bytes, and %d are the most: choose a folder with a shorter path (--root, or for once --dir or TMPDIR)", path, n, longestSocket)
	}
	return nil
}

func (r *Runtime) socket() string { return filepath.Join(r.dir, "sock") }

func (r *Runtime) file(name ...string) string {
	return filepath.Join(append([]string{r.dir}, name...)...)
}

// Endpoint is the endpoint of the runtime in a root dir.
func Endpoint(root string) string { return "unix://" + filepath.Join(root, Folder, "sock") }

// Name is what people call it, as New found it.
func (r *Runtime) Name() string { return r.name }

func nameOf(v Version, binary string) string { return fmt.Sprintf("containerd %s (%s)", v, binary) }

// NoNetwork says why pods get no network, and what to do; "": they get one.
func (r *Runtime) NoNetwork() string { return r.network.lacks }

// Warning says what pods with a network lack; "": nothing.
func (r *Runtime) Warning() string { return r.network.warning }

// Tried is closed after the first try to start it.
func (r *Runtime) Tried() <-chan struct{} { return r.tried }

// Start takes over the containerd that a former agent started here, or starts one, and waits until
// it answers.
func (r *Runtime) Start(ctx context.Context) error {
	defer r.first.Do(func() { close(r.tried) })
	version, err := versionOf(r.binary)
	if err == nil { // else it will not start, and a former one may still run
		r.version = version
	}
	err = r.configure(ctx)
	if err == nil {
		r.process, err = r.takeOver(ctx)
	}
	if err == nil && r.process != nil && r.changed {
		r.stopForSettings()
	}
	if err == nil && r.process == nil {
		err = r.spawn(ctx)
	}
	if err == nil {
		err = r.answers(ctx)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", nameOf(r.version, r.binary), err)
	}
	return nil
}

// stopForSettings ends a containerd that was started with other settings; containers run on. Where it
// could not start again it goes on with those that it has.
func (r *Runtime) stopForSettings() {
	if err := r.hasRoom(); err != nil {
		r.settings.Log.Warn("managed runtime goes on with its former settings", "err", err)
		return
	}
	r.process.stop(stopPatience)
	r.process = nil
}

// Run keeps the runtime running until ctx ends, and leaves it running then. It calls Start, unless
// it was called.
func (r *Runtime) Run(ctx context.Context) {
	var log sync.WaitGroup
	defer log.Wait()
	if !r.settings.Service { // else systemd keeps its log
		log.Go(func() { r.keepLogSmall(ctx) })
	}
	for failures := 0; ; {
		if r.process == nil {
			err := r.Start(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				failures++
				r.fail(ctx, err, failures)
				continue
			}
			r.trouble("")
		}
		since := time.Now()
		if !r.process.wait(ctx) {
			return
		}
		if time.Since(since) > backoff.Most {
			failures = 0
		}
		failures++
		r.died(ctx, failures)
	}
}

// fail says why the runtime does not start, and waits.
func (r *Runtime) fail(ctx context.Context, err error, failures int) {
	wait := backoff.After(failures)
	r.settings.Log.Error("managed runtime does not start", "err", err, "again", wait)
	r.trouble("the managed runtime does not start, and is tried again: " + err.Error())
	if r.process != nil {
		r.process.stop(stopPatience)
		r.process = nil
	}
	sleep(ctx, wait)
}

// died says that the runtime has died, and waits before it is started again. The first time it is
// started at once.
func (r *Runtime) died(ctx context.Context, failures int) {
	how := cmp.Or(r.process.how, "ended") + ", " + r.lastWords()
	r.process = nil
	var wait time.Duration
	if failures > 1 {
		wait = backoff.After(failures - 1)
	}
	r.settings.Log.Error("managed runtime died, and is started again; containers run on", "in", wait, "how", how)
	r.trouble("the managed runtime died (" + how + "), and is started again; containers run on")
	if r.settings.Restarted != nil {
		r.settings.Restarted()
	}
	sleep(ctx, wait)
}

func (r *Runtime) trouble(text string) {
	if r.settings.Trouble != nil {
		r.settings.Trouble(text)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// How long the runtime may take, on a slow and busy machine.
const (
	startPatience = 2 * time.Minute  // the first time
	mostPatience  = 32 * time.Minute // after starts that had no answer
	stopPatience  = 20 * time.Second
	askEvery      = 50 * time.Millisecond
)

// answers waits until the runtime answers CRI, or ends. One that has not answered in time is started
// again, and then has twice the time: after a crash it looks for its containers first, which takes a
// slow machine with many of them minutes.
func (r *Runtime) answers(ctx context.Context) error {
	c, err := cri.Dial("unix://" + r.socket())
	if err != nil {
		return err
	}
	defer c.Close()
	patience := cmp.Or(r.patience, startPatience)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		_, err = c.Version(limited)
		if err == nil {
			r.patience = startPatience
			return nil
		}
		if r.process.ended() {
			return fmt.Errorf("it ended: %s", r.lastWords())
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it does not answer: %w", err)
		}
		if limited.Err() != nil {
			r.patience = min(2*patience, mostPatience)
			return fmt.Errorf("it has not answered for %s; the next one has %s: %s", patience, r.patience, r.lastWords())
		}
		sleep(limited, askEvery)
	}
}

// configure finds out the settings of containerd, and writes all else that it reads.
func (r *Runtime) configure(ctx context.Context) error {
	if err := errors.Join(os.MkdirAll(r.dir, 0o711), os.Chmod(r.dir, 0o711)); err != nil { // users of pods with user namespaces pass through
		return err
	}
	if err := r.forgetFormerBoot(ctx); err != nil {
		return err
	}
	if err := r.writeNetwork(); err != nil {
		return err
	}
	former, err := os.ReadFile(r.file("config.toml"))
	isThere := err == nil
	c := Here(r.dir, string(former))
	c.Socket, c.Sandbox, c.Registries, c.SystemdCgroup = r.socket(), Pause, registries, r.settings.Systemd
	c.ConfDir, c.BinDirs = r.network.confDir, r.network.binDirs
	if r.settings.Service { // which has all capabilities
		c.RestrictOOM = false
	}
	if r.toml, err = c.TOML(r.version); err != nil {
		return err
	}
	r.changed = isThere && string(former) != r.toml
	return nil
}

// writeNetwork writes the network of pods. They keep the one that is there where the disk takes no other: a
// containerd that runs is taken over on a full disk, too.
func (r *Runtime) writeNetwork() error {
	err := r.network.write()
	if disk.Unwritable(err) && isFile(r.network.file()) {
		r.settings.Log.Warn("the network of pods stays as it is", "err", err)
		return nil
	}
	return err
}

// writeSettings writes the settings of a containerd that is about to start. Before the former one has
// ended they would be taken for those that it has.
func (r *Runtime) writeSettings() error {
	former, err := os.ReadFile(r.file("config.toml"))
	if err == nil && string(former) == r.toml {
		return nil
	}
	return disk.WriteFile(r.file("config.toml"), []byte(r.toml), 0o600)
}

// registries are where the machine's administrator says how to reach registries.
const registries = "/etc/containerd/certs.d:/etc/docker/certs.d"
