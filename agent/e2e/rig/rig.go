// Package rig sets up, on the machine it runs on, all that a test, the demo or a
// measurement of monopod needs, and takes it down again without a trace: a
// registry with images made of local files, a private containerd or CRI-O with a pod
// network of its own, and monopod itself. It needs root.
package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Rig is one such set. Its methods are for one goroutine. If the process that
// opened it dies, a janitor removes everything.
type Rig struct {
	Dir      string // short, as paths of sockets must be
	Registry *Registry
	Network  *Network
	Runtime  *Runtime
	CRI      *CRI // of Runtime

	remains remains
	agents  []*Agent
	janitor *exec.Cmd
	release io.Closer // lets the janitor go
}

// Open starts everything with the runtime of that version (Distro, Latest or CRIO).
// One rig runs at a time on a machine: Open waits for another one to be closed.
func Open(ctx context.Context, version string) (*Rig, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a private container runtime needs root: run this as root")
	}
	lock, err := lockMachine(filepath.Join(os.TempDir(), "monopod-rig.lock"), func() {
		fmt.Fprintln(os.Stderr, "waiting for another monopod test, demo or measurement on this machine to end")
	})
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the janitor holds it from here on
	dir, err := os.MkdirTemp("", "monopod-")
	if err != nil {
		return nil, fmt.Errorf("open rig: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the root of a pod with users of its own comes through here
		return nil, fmt.Errorf("open rig: %w", err)
	}
	r := &Rig{Dir: dir, remains: remains{dir: dir}}
	if err := r.remains.remember(); err != nil {
		return nil, fmt.Errorf("open rig: %w", err)
	}
	if r.janitor, r.release, err = startJanitor(dir, lock); err != nil {
		return nil, err
	}
	if err := r.start(ctx, version); err != nil {
		_, _ = r.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context, version string) (err error) {
	if r.Registry, err = NewRegistry(); err != nil {
		return err
	}
	if err := pushImages(r.Registry, r.Dir); err != nil {
		return err
	}
	if r.Network, err = newNetwork(filepath.Join(r.Dir, "cni")); err != nil {
		return err
	}
	if r.Runtime, err = newRuntime(filepath.Join(r.Dir, runtimeDir), version, r.Network, r.Registry.Addr); err != nil {
		return err
	}
	r.CRI = r.Runtime.CRI
	return r.Runtime.Start(ctx)
}

// Leaks removes all pods by CRI and returns what is still there although they are
// gone: processes, mounts, cgroups, network, files. Agents must have been closed.
func (r *Rig) Leaks(ctx context.Context) ([]string, error) {
	if err := r.CRI.RemoveAll(ctx, ""); err != nil {
		return nil, err
	}
	var found []string
	err := Until(ctx, 20*time.Second, func() error { // shims end a moment after their last container
		found = slices.Concat(r.remains.leaks(), r.Network.leaks())
		if len(found) > 0 {
			return errLeaks
		}
		return nil
	})
	if errors.Is(err, errLeaks) {
		err = nil
	}
	return found, err
}

var errLeaks = errors.New("leaks")

// Close stops everything that runs, returns what Leaks found, and then removes all
// that is left.
func (r *Rig) Close(ctx context.Context) ([]string, error) {
	var errs []error
	for _, a := range r.agents {
		errs = append(errs, a.Close())
	}
	var found []string
	if r.Runtime != nil && r.Runtime.Running() {
		var err error
		found, err = r.Leaks(ctx)
		errs = append(errs, err, r.Runtime.Stop(), r.CRI.Close())
	}
	for _, leak := range found {
		if path, ok := strings.CutPrefix(leak, "cgroup "); ok {
			defer func() { _ = syscall.Rmdir(path) }() // last found first: children before parents
		}
	}
	if r.Registry != nil {
		errs = append(errs, r.Registry.Close())
	}
	r.remains.sweep()
	if r.Network != nil {
		r.Network.close()
	}
	errs = append(errs, r.release.Close(), r.janitor.Wait())
	return found, errors.Join(errs...)
}
