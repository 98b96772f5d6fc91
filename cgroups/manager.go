// Package cgroups makes and removes the cgroups of pods and of the levels that
// hold them, v1 and v2, by files or by systemd, with the names and values that
// the kubelet gives them. It takes names and numbers and knows no pods.
package cgroups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
)

// Config says where cgroups are. Zero values mean the default given.
type Config struct {
	Root  string // the cgroup that holds kubepods; default the root; must exist
	Own   string // name of a cgroup right under Root that is made to hold kubepods, for Dismantle to remove; default none
	Mount string // default /sys/fs/cgroup
	// Mkdir and Rmdir are the system calls; those of tests play the kernel.
	Mkdir, Rmdir func(dir string) error
}

// Node is what the levels above pods are made for.
type Node struct {
	CPU       int64    // thousandths of a core
	Memory    int64    // bytes
	Pids      int64    // processes and threads
	CPUs      string   // the list of all, such as 0-3
	HugePages []string // page sizes of the machine, such as 2MB
}

// ErrValues: the cgroup is there, but the kernel did not take all its values.
var ErrValues = errors.New("the kernel did not take all values")

// ErrLacking is an ErrValues of which all others were taken: the kernel has no file for some.
var ErrLacking = errors.New("it has no file for some")

// ErrNotSetUp: SetUp has not decided on the driver yet, so that no cgroup has a name.
var ErrNotSetUp = errors.New("it is not known yet what cgroups are called here, as the runtime has not said its cgroup driver")

// Manager makes and removes cgroups. Its methods may be called by any
// goroutine, those on one pod by one at a time.
type Manager struct {
	own  bool // Names.Root is made by SetUp
	tree *tree

	// turn has one slot: who fills it makes or writes levels, and then gives the turn
	// back with endTurn. Nothing waits for the kernel or systemd under mu.
	turn chan struct{}

	mu        sync.Mutex // guards what follows
	names     Names
	units     *bus // nil unless the driver is Systemd; set with it, and once
	node      Node
	burstable int64 // cpu.shares that the Burstable level is to have; 0: not known
	written   int64 // that were written last
}

// mkdir makes a cgroup that all may read, independent of the umask.
func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// Open looks at what the machine has, without changing anything. The error says
// why no cgroups can be made.
func Open(cfg Config) (*Manager, error) {
	if cfg.Mount == "" {
		cfg.Mount = "/sys/fs/cgroup"
	}
	if cfg.Mkdir == nil {
		cfg.Mkdir = mkdir
	}
	if cfg.Rmdir == nil {
		cfg.Rmdir = func(dir string) error {
			if err := syscall.Rmdir(dir); err != nil {
				return &os.PathError{Op: "rmdir", Path: dir, Err: err}
			}
			return nil
		}
	}
	t, err := openTree(cfg.Mount, cfg.Mkdir, cfg.Rmdir)
	if err != nil {
		return nil, fmt.Errorf("cgroups at %s: %w", cfg.Mount, err)
	}
	m := &Manager{names: Names{Root: path.Join("/", cfg.Root)}, tree: t, turn: make(chan struct{}, 1)}
	for _, mount := range t.made() {
		if dir := filepath.Join(mount, m.names.Root); !exists(dir) {
			return nil, fmt.Errorf("cgroup root %s: there is no %s", m.names.Root, dir)
		}
	}
	if err := t.writable(m.names.Root); err != nil {
		return nil, fmt.Errorf("cgroups: %w", err)
	}
	m.own, m.names.Root = cfg.Own != "", path.Join(m.names.Root, cfg.Own)
	return m, nil
}

// Unified reports whether this is cgroup v2.
func (m *Manager) Unified() bool { return m.tree.unified }

// takeTurn waits for the turn to make or write levels.
func (m *Manager) takeTurn(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}: // as a rule
		return nil
	default:
	}
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endTurn gives the turn back, after the weight that the Burstable level was given
// meanwhile is written.
func (m *Manager) endTurn(ctx context.Context) error {
	var err error
	for {
		m.mu.Lock()
		shares := m.burstable
		if shares == m.written || m.names.Driver == None {
			<-m.turn
			m.mu.Unlock()
			return err
		}
		m.written = shares
		level := m.names.level(Burstable)
		m.mu.Unlock()
		err = m.update(ctx, level, Resources{Shares: shares})
	}
}

// SetUp decides on the driver and makes the levels that pods are put under. It
// must come before what follows, and may be called again to put them right.
func (m *Manager) SetUp(ctx context.Context, d Driver, n Node) error {
	if err := m.takeTurn(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	m.names.Driver, m.node = d, n
	if d == Systemd && m.units == nil {
		m.units = newBus()
	}
	m.mu.Unlock()
	return m.setUpInTurn(ctx)
}

// setUpInTurn makes and writes the levels, and ends the caller's turn.
func (m *Manager) setUpInTurn(ctx context.Context) error {
	err := m.setUp(ctx)
	later := m.endTurn(ctx)
	if err != nil {
		return err
	}
	return later
}

// setUp makes and writes the levels: the caller has the turn.
func (m *Manager) setUp(ctx context.Context) error {
	m.mu.Lock()
	node, names, shares := m.node, m.names, max(m.burstable, minShares)
	m.written = m.burstable
	m.mu.Unlock()
	huge := map[string]int64{}
	for _, size := range node.HugePages {
		huge[size] = Unlimited
	}
	levels := map[Class]Resources{
		Guaranteed: {Shares: Shares(node.CPU), Memory: node.Memory, Pids: node.Pids, CPUs: node.CPUs, HugePages: huge},
		Burstable:  {Shares: shares, HugePages: huge},
		BestEffort: {Shares: minShares, HugePages: huge},
	}
	var values error
	for _, c := range classes {
		err := m.put(ctx, names.level(c), levels[c])
		if err != nil && !errors.Is(err, ErrValues) {
			return err
		}
		values = errors.Join(values, err)
	}
	return values
}

// Names returns what cgroups are called; before SetUp the zero value but for the Root.
func (m *Manager) Names() Names {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names
}

// systemd returns the connection to it; nil: the driver is another.
func (m *Manager) systemd() *bus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.units
}

// pod returns the path of a pod's cgroup, which is never one that holds others.
func (m *Manager) pod(c Class, uid string) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	path := m.Names().Pod(c, uid)
	if path == "" {
		return "", ErrNotSetUp
	}
	return path, nil
}

// SetBurstable gives the Burstable level its weight: that of what its pods ask
// for together, in thousandths of a core. While another goroutine writes levels, that
// one writes the weight, and SetBurstable does not wait for it.
func (m *Manager) SetBurstable(ctx context.Context, milli int64) error {
	m.mu.Lock()
	m.burstable = Shares(milli)
	mine := m.burstable != m.written
	if mine {
		select {
		case m.turn <- struct{}{}:
		default:
			mine = false
		}
	}
	m.mu.Unlock()
	if !mine {
		return nil
	}
	return m.endTurn(ctx)
}

// Refresh corrects the values of the levels after any change from outside.
func (m *Manager) Refresh(ctx context.Context) error {
	if m.Names().Driver == None {
		return ErrNotSetUp
	}
	if err := m.takeTurn(ctx); err != nil {
		return err
	}
	return m.setUpInTurn(ctx)
}

// Create makes a pod's cgroup, if it is not there, and writes its values. The
// cgroup is there if the error is ErrValues.
func (m *Manager) Create(ctx context.Context, c Class, uid string, r Resources) error {
	path, err := m.pod(c, uid)
	if err != nil {
		return err
	}
	if err := m.levels(ctx, c); err != nil {
		return err
	}
	return m.put(ctx, path, r)
}

// levels makes the levels again if they were removed.
func (m *Manager) levels(ctx context.Context, c Class) error {
	if m.tree.exists(m.Names().level(c)) {
		return nil
	}
	if err := m.Refresh(ctx); err != nil && !errors.Is(err, ErrValues) {
		return err
	}
	return nil
}

// Update writes values of a pod's cgroup.
func (m *Manager) Update(ctx context.Context, c Class, uid string, r Resources) error {
	path, err := m.pod(c, uid)
	if err != nil {
		return err
	}
	return m.update(ctx, path, r)
}

// Exists reports whether a pod's cgroup is there with all that belongs to it.
func (m *Manager) Exists(c Class, uid string) bool {
	path, err := m.pod(c, uid)
	return err == nil && m.tree.exists(path)
}

// Pods returns the uids of all pods that have a cgroup or a part of one, also
// those made by another program.
func (m *Manager) Pods() map[string]bool {
	uids, names := map[string]bool{}, m.Names()
	if names.Driver == None {
		return uids
	}
	for _, c := range classes {
		for _, base := range m.tree.children(names.level(c)) {
			if uid := names.uid(base); uid != "" {
				uids[uid] = true
			}
		}
	}
	return uids
}

// put makes a cgroup and writes its values.
func (m *Manager) put(ctx context.Context, path string, r Resources) error {
	if units := m.systemd(); units != nil {
		if err := units.start(ctx, path); err != nil {
			return fmt.Errorf("slice %s: %w", filepath.Base(path), err)
		}
	}
	if err := m.tree.make(path); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return m.update(ctx, path, r)
}

// update writes values: first to systemd, which would overwrite others, then
// to the files, since systemd does not know all.
func (m *Manager) update(ctx context.Context, path string, r Resources) error {
	var told error
	if units := m.systemd(); units != nil {
		r.Quota = wholePercent(r.Quota, r.period())
		told = units.set(ctx, path, r, m.tree.unified)
	}
	lacking, refused := m.tree.set(path, r)
	err := errors.Join(told, refused, lacking)
	switch {
	case err == nil:
		return nil
	case told == nil && refused == nil:
		return fmt.Errorf("cgroup %s: %w: %w: %w", path, ErrValues, ErrLacking, err)
	}
	return fmt.Errorf("cgroup %s: %w: %w", path, ErrValues, err)
}
