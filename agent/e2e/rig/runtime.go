package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Containerd is a private containerd: its root, state, socket, shims and pod
// network are its own. Its methods are for one goroutine.
type Containerd struct {
	Version  string // Distro or Latest
	Dir      string
	Endpoint string // unix://...
	Log      string
	CRI      *CRI
	bin      string
	path     string // PATH with its own shim first
	process  *Process
}

// newContainerd writes the configuration under dir, with network as pod network
// and registry as the source of all images. Start starts it.
func newContainerd(dir, version string, network *Network, registry string) (*Containerd, error) {
	bin, shims, err := binaries(version)
	if err != nil {
		return nil, err
	}
	number, err := major(bin)
	if err != nil {
		return nil, err
	}
	path := os.Getenv("PATH")
	if shims != "" {
		path = shims + ":" + path
	}
	c := &Containerd{Version: version, Dir: dir, bin: bin, path: path, Log: filepath.Join(dir, "containerd.log"),
		Endpoint: "unix://" + filepath.Join(dir, "containerd.sock")}
	certs := filepath.Join(dir, "certs.d", "_default")
	if err := os.MkdirAll(certs, 0o755); err != nil {
		return nil, fmt.Errorf("configure containerd: %w", err)
	}
	s := newSettings(dir, network)
	config := s.configV2()
	if number >= 2 {
		config = s.configV3()
	}
	err = errors.Join(os.WriteFile(c.config(), []byte(config), 0o644),
		os.WriteFile(filepath.Join(certs, "hosts.toml"), []byte(hosts(registry)), 0o644))
	if err != nil {
		return nil, fmt.Errorf("configure containerd: %w", err)
	}
	if c.CRI, err = DialCRI(c.Endpoint); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Containerd) config() string { return filepath.Join(c.Dir, "config.toml") }

// Start starts containerd and waits until its CRI Status is ready.
func (c *Containerd) Start(ctx context.Context) error {
	var err error
	if c.process, err = StartProcess(c.Log, []string{"PATH=" + c.path}, c.bin, "-c", c.config()); err != nil {
		return err
	}
	return Until(ctx, 2*time.Minute, func() error {
		select {
		case <-c.process.Done():
			return Final(fmt.Errorf("containerd ended: %w\n%s", c.process.Err(), Tail(c.Log, 20)))
		default:
			return c.CRI.Ready(ctx)
		}
	})
}

// Kill ends containerd with SIGKILL. Containers run on under their shims.
func (c *Containerd) Kill() {
	if c.process != nil {
		c.process.Kill()
		c.process = nil
	}
}

// Stop ends containerd with SIGTERM, or SIGKILL after a minute. Containers run on.
func (c *Containerd) Stop() error {
	if c.process == nil {
		return nil
	}
	err := c.process.Stop(time.Minute)
	c.process = nil
	return err
}

// Running says whether containerd was started and not stopped.
func (c *Containerd) Running() bool { return c.process != nil }

// Restart stops containerd, as an upgrade does, and starts it again.
func (c *Containerd) Restart(ctx context.Context) error {
	return errors.Join(c.Stop(), c.Start(ctx))
}
