package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// settings are what containerd's configuration is made of.
type settings struct {
	dir         string // its own: root, state, socket, certs.d are in here
	network     *Network
	snapshotter string
	noOOM       bool // the process may not lower oom scores
}

func newSettings(dir string, n *Network) settings {
	return settings{dir: dir, network: n, snapshotter: snapshotter(dir), noOOM: !mayLowerOOM()}
}

// configV2 is the format of containerd 1.x.
func (s settings) configV2() string {
	return fmt.Sprintf(`version = 2
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
  address = "%[1]s/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[2]s"
  restrict_oom_score_adj = %[3]v
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "%[4]s"
  conf_dir = "%[5]s"
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "%[1]s/certs.d"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "%[6]s"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  Root = "%[1]s/runc"
  SystemdCgroup = %[7]v
`, s.dir, Pause, s.noOOM, s.network.BinDir, s.network.ConfDir(), s.snapshotter, systemdCgroups())
}

// configV3 is the format of containerd 2.x.
func (s settings) configV3() string {
	return fmt.Sprintf(`version = 3
imports = []
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
  address = "%[1]s/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "%[6]s"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "%[2]s"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "%[1]s/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = %[3]v
  netns_mounts_under_state_dir = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["%[4]s"]
  conf_dir = "%[5]s"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  Root = "%[1]s/runc"
  SystemdCgroup = %[7]v
`, s.dir, Pause, s.noOOM, s.network.BinDir, s.network.ConfDir(), s.snapshotter, systemdCgroups())
}

// systemdCgroups says whether systemd makes the cgroups, as MONOPOD_CGROUP_DRIVER=systemd
// asks on a machine that runs it. The runtime tells agents.
func systemdCgroups() bool { return os.Getenv("MONOPOD_CGROUP_DRIVER") == "systemd" }

// snapshotter is overlayfs, unless dir is itself on an overlay, as inside a container.
func snapshotter(dir string) string {
	const overlayfs = 0x794c7630 // statfs(2)
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err == nil && st.Type == overlayfs {
		return "native"
	}
	return "overlayfs"
}

// mayLowerOOM says whether we have CAP_SYS_RESOURCE.
func mayLowerOOM() bool {
	const sysResource = 24 // capability.h
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, _ := strconv.ParseUint(strings.TrimSpace(v), 16, 64)
			return caps&(1<<sysResource) != 0
		}
	}
	return false
}
