// Package cgroups makes and removes the cgroups of pods and of the levels that hold them, v1 and
// v2, by files or by systemd, with the names and values that the kubelet gives them. It takes names
// and numbers and knows no pods.
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

// Config is the location of the cgroups. Zero values select the defaults.
type Config struct {
	Root  string // the cgroup that holds kubepods; default the root; must exist
	Own   string // name of a cgroup right under Root that SetUp creates to hold kubepods and Dismantle removes; default none
	Mount string // default /sys/fs/cgroup
	// Mkdir, Rmdir and Write are the system calls; tests replace them to simulate the kernel.
	Mkdir, Rmdir func(dir string) error
	Write        func(file, value string) error
	// IsContainers reports whether a cgroup of v2 holds all of a container, so that the processes in
	// it may be moved to one below; tests replace it, too.
	IsContainers func(dir string) bool
}

// Node has the values of the levels above pods.
type Node struct {
	CPU       int64    // thousandths of a core
	Memory    int64    // bytes
	Pids      int64    // processes and threads
	CPUs      string   // the list of all, such as 0-3
	HugePages []string // page sizes of the machine, such as 2MB
}

// ErrValues means that the cgroup exists, but the kernel did not accept all its values.
var ErrValues = errors.New("the kernel did not take all values")

// ErrLacking is an ErrValues where the kernel has no file for some values and accepted all others.
var ErrLacking = errors.New("it has no file for some")

// ErrNotSetUp means that SetUp has not chosen the driver yet, so that the names of cgroups are not
// known.
var ErrNotSetUp = errors.New("it is not known yet what cgroups are called here, as the runtime has not said its cgroup driver")

// Manager creates and removes cgroups. Any goroutine may call its methods; calls for one pod must
// not be concurrent.
type Manager struct {
	own  bool // Names.Root is created by SetUp
	tree *tree

	// turn has one slot: the goroutine that fills it creates or writes levels, and then releases
	// the turn with endTurn. mu is never held while waiting for the kernel or systemd.
	turn chan struct{}

	mu        sync.Mutex // guards what follows
	names     Names
	units     *bus // nil unless the driver is Systemd; set once, together with it
	node      Node
	burstable int64 // cpu.shares that the Burstable level should have; 0: not known
	written   int64 // the shares that were written last
}

// mkdir creates a cgroup that all users may read, independent of the umask.
func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// Open detects the cgroups of the machine, without changing anything. The error says why none can
// be created.
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
	if cfg.Write == nil {
		cfg.Write = write
	}
	if cfg.IsContainers == nil {
		cfg.IsContainers = isContainers
	}
	t, err := openTree(cfg)
	if err != nil {
		return nil, fmt.Errorf("cgroups at %s: %w", cfg.Mount, err)
	}
	m := &Manager{names: Names{Root: path.Join("/", cfg.Root)}, tree: t, turn: make(chan struct{}, 1)}
	for _, mount := range t.made {
		if dir := dirOf(mount, m.names.Root); !exists(dir) {
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

// takeTurn waits for the turn to create or write levels.
func (m *Manager) takeTurn(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}: // the usual case, also if ctx has ended
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

// endTurn releases the turn, after it has written a weight that SetBurstable set meanwhile.
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

// SetUp chooses the driver and creates the levels that hold pods. It must be called before the
// methods below, and may be called again to repair the levels.
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

// setUpInTurn creates and writes the levels, and releases the caller's turn.
func (m *Manager) setUpInTurn(ctx context.Context) error {
	err := m.setUp(ctx)
	later := m.endTurn(ctx)
	if err != nil {
		return err
	}
	return later
}

// setUp creates and writes the levels. The caller must have the turn.
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

// Names returns the names of cgroups; before SetUp only Root is set.
func (m *Manager) Names() Names {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names
}

// systemd returns the connection to systemd; nil: another driver is used.
func (m *Manager) systemd() *bus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.units
}

// pod returns the path of a pod's cgroup, which never holds other pods.
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

// SetBurstable sets the weight of the Burstable level from the total request of its pods, in
// thousandths of a core. If another goroutine is writing levels, that one writes the weight, and
// SetBurstable does not wait for it.
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

// Refresh restores the values of the levels after changes by other programs.
func (m *Manager) Refresh(ctx context.Context) error {
	if m.Names().Driver == None {
		return ErrNotSetUp
	}
	if err := m.takeTurn(ctx); err != nil {
		return err
	}
	return m.setUpInTurn(ctx)
}

// Create creates a pod's cgroup, if it is missing, and writes its values. If the error is ErrValues
// the cgroup exists.
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

// levels recreates the levels if they were removed.
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

// Exists reports whether a pod's cgroup exists in all hierarchies with all its controllers.
func (m *Manager) Exists(c Class, uid string) bool {
	path, err := m.pod(c, uid)
	return err == nil && m.tree.exists(path)
}

// Pods returns the uids of all pods that have a cgroup, in at least one hierarchy, including those
// created by other programs.
func (m *Manager) Pods() map[string]bool {
	uids, names := map[string]bool{}, m.Names()
	if names.Driver == None {
		return uids
	}
	for _, c := range classes {
		for base := range m.tree.children(names.level(c)) {
			if uid := names.uid(base); uid != "" {
				uids[uid] = true
			}
		}
	}
	return uids
}

// put creates a cgroup and writes its values.
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

// update writes values first to systemd, which would otherwise overwrite them, then to the files,
// as systemd does not know all of them.
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
