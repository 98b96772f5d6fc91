package rig

import (
	"os"
	"path/filepath"

	"monopod/agent/managed"
)

// containerdConfig is the configuration of a containerd whose root, state, socket and registries
// are in dir.
func containerdConfig(dir string, n *Network) managed.Config {
	c := managed.Here(dir, "")
	c.Socket, c.Registries = filepath.Join(dir, "containerd.sock"), filepath.Join(dir, "certs.d")
	c.Sandbox, c.ConfDir, c.BinDirs, c.SystemdCgroup = Pause, n.ConfDir(), []string{n.BinDir}, systemdCgroups()
	return c
}

// systemdCgroups says whether systemd makes the cgroups, as MONOPOD_CGROUP_DRIVER=systemd
// asks on a machine that runs it. The runtime tells agents.
func systemdCgroups() bool { return os.Getenv("MONOPOD_CGROUP_DRIVER") == "systemd" }
