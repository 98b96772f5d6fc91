package main

import (
	"fmt"

	"monopod/agent/e2e/rig"
)

// The two containerds, each with a root of its own.
const (
	containerd1 = "distro"
	containerd2 = rig.Latest
)

// The two drivers of cgroups.
const (
	cgroupfs = "cgroupfs"
	systemd  = "systemd"
)

const configV2 = `version = 2
root = "/var/lib/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[1]s"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = %[2]v
`

const configV3 = `version = 3
root = "/var/lib/containerd2"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "%[1]s"
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/usr/lib/cni"]
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = %[2]v
`

// runtime has containerd.service be that version with that driver of cgroups, and
// gives it the images. There may be no pod.
func (b *box) runtime(version, driver string) error {
	config, unit := configV2, ""
	if version == containerd2 {
		bin := "/payload/cache/containerd-" + version
		config = configV3
		unit = "[Service]\nExecStart=\nExecStart=" + bin + "/containerd\nEnvironment=PATH=" + bin + ":/usr/sbin:/usr/bin\n"
	}
	return b.all("mkdir -p /etc/containerd /etc/systemd/system/containerd.service.d",
		"cat >/etc/containerd/config.toml <<'EOF'\n"+fmt.Sprintf(config, rig.Pause, driver == systemd)+"EOF",
		"cat >/run/trial.conf <<'EOF'\n"+unit+"EOF",
		`d=/etc/systemd/system
cmp -s /run/trial.conf $d/containerd.service.d/trial.conf || { mv /run/trial.conf $d/containerd.service.d/; systemctl daemon-reload; }
[ -e $d/multi-user.target.wants/containerd.service ] || systemctl enable -q containerd
systemctl restart containerd`,
		`ctr -n k8s.io images ls -q | grep -q '^`+rig.Busybox+`' || { ctr -n k8s.io images import /payload/images.tar; sync; }`).err
}
