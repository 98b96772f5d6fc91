package main

import (
	"fmt"

	"monopod/agent/e2e/rig"
)

// The two containerds, each with a root of its own.
const (
	containerd1 = rig.Distro
	containerd2 = rig.Latest
)

// service is a runtime as a service of the machine: its version, and the driver of its cgroups.
type service struct{ version, driver string }

// maker is what the trials must know of a runtime: containerd, or CRI-O.
type maker struct {
	usual  service // that a machine has
	perPod int     // what runs of a pod with one container, by the runtime's account
	// words are shell functions and variables by which scripts speak of the runtime:
	//
	//	$unit        its service
	//	$folders     where it keeps what outlives a boot
	//	$mounts      matches what it mounts for pods in mountinfo; $rootfs, of that, root file systems
	//	running      id and process of each container and sandbox that has a process
	//	known        ids of all containers and sandboxes
	//	boxes        ids of the sandboxes that are not stopped
	//	strangers    ids of containers and sandboxes of other pods than those with these uids
	//	removed      ids of the sandboxes that it has removed in this boot, by its log
	//	watched      ids of what its monitors watch
	//	forget       deletes all images
	//	tag          gives an image another name
	//	again        imports the images once more, under other names
	words  string
	sturdy string // a script that sets it up to survive power cuts, as docs/ say
	oci    string // the program that runs containers, of a CRI-O
	rig    string // what end-to-end tests of it have in their environment
}

// by is the usual version with that driver.
func (m maker) by(driver string) service { return service{m.usual.version, driver} }

// ofContainerd: strangers leaves out the containers that containerd keeps and does not know: where a
// power cut took the folder of one that was being created (the record of it is synced, the folder is
// not), CRI neither lists nor removes it.
var ofContainerd = maker{usual: service{containerd1, cgroupfs}, perPod: 2, words: `unit=containerd folders=/var/lib/containerd
mounts=' /run/containerd/' rootfs=' /run/containerd/io.containerd.runtime.v2.task/.*/rootfs '
running() { ctr -n k8s.io tasks ls | awk '$3 == "RUNNING" {print $1, $2}'; }
known() { ctr -n k8s.io containers ls -q "$@"; }
boxes() { comm -12 <(known 'labels."io.cri-containerd.kind"==sandbox' | sort) <(running | cut -d ' ' -f 1 | sort); }
strangers() {
	local c kind filter='id!=none'
	for c; do filter="$filter,labels.\"io.kubernetes.pod.uid\"!=\"$c\""; done
	for c in $(known "$filter"); do
		kind=$(ctr -n k8s.io containers info $c | grep -o '"io.cri-containerd.kind": "[a-z]*"') || continue
		case $kind in *container\") [ -e /var/lib/containerd/io.containerd.grpc.v1.cri/containers/$c ] || continue ;; esac
		echo $c
	done
}
removed() { journalctl -b -u containerd -o cat | sed -n 's/.*RemovePodSandbox [^0-9a-f]*\([0-9a-f]\{64\}\).* returns.*/\1/p'; }
watched() { pgrep -a containerd-shim | sed 's/.* -id \([0-9a-f]*\).*/\1/'; }
forget() { ctr -n k8s.io images rm $(ctr -n k8s.io images ls -q); [ -z "$(ctr -n k8s.io images ls -q)" ]; }
tag() { ctr -n k8s.io images tag $1 $2; }
again() { ctr -n k8s.io images import --base-name registry.test/again /payload/images.tar; }
`}

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

// use has the machine run that runtime, with its images. There may be no pod.
func (b *box) use(s service) error {
	if s.version == rig.CRIO {
		return b.useCRIO(s.driver)
	}
	config, unit := configV2, ""
	if s.version == containerd2 {
		bin := "/payload/cache/containerd-" + s.version
		config = configV3
		unit = "[Service]\nExecStart=\nExecStart=" + bin + "/containerd\nEnvironment=PATH=" + bin + ":/usr/sbin:/usr/bin\n"
	}
	return b.all("mkdir -p /etc/containerd /etc/systemd/system/containerd.service.d",
		"cat >/etc/containerd/config.toml <<'EOF'\n"+fmt.Sprintf(config, rig.Pause, s.driver == systemd)+"EOF",
		"cat >/run/trial.conf <<'EOF'\n"+unit+"EOF",
		`d=/etc/systemd/system
cmp -s /run/trial.conf $d/containerd.service.d/trial.conf || { mv /run/trial.conf $d/containerd.service.d/; systemctl daemon-reload; }
[ -e $d/multi-user.target.wants/containerd.service ] || systemctl enable -q containerd
systemctl restart containerd`,
		`ctr -n k8s.io images ls -q | grep -q '^`+rig.Busybox+`' || { ctr -n k8s.io images import /payload/images.tar; sync; }`).err
}
