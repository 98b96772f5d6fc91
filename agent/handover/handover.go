// Package handover takes the pods of a machine from monopod to a kubelet, or from a kubelet to
// monopod, without a restart.
//
// Both give the same pod the same names, labels, folders and cgroup, and know it by its uid. So a
// pod goes over if its uid stays, and with it the root dir, the node name, the cgroup driver and
// root, and the folder of logs.
package handover

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/cgroups"
)

// Node is what both agents of a machine must have in common.
type Node struct {
	Name           string // in lower case
	Root           string // dir
	PodLogs        string // dir
	CgroupDriver   cgroups.Driver
	CgroupRoot     string
	Endpoint       string // of the runtime
	SeccompDefault bool
	Proc           string // where the kernel shows processes

	// By what a kubelet that starts admits the pods: it kills those that it refuses. Its own value is
	// enough if it has room for them.
	Pods                 int // how many there are
	Cores                int
	MaxPods, PodsPerCore int64
	UnsafeSysctls        []string // that pods may change: names, or prefixes that end in *
	HasSwap              bool     // a kubelet does not start, unless it is told to
}

// kubelets are the names of processes that are kubelets, or have one inside.
var kubelets = []string{"kubelet", "kubelite", "k3s", "k3s-agent", "k3s-server"}

// Kubelet returns the name and id of a process that is a kubelet, or has one inside; "": there is
// none. proc is where the kernel shows processes.
func Kubelet(proc string) string {
	dirs, _ := os.ReadDir(proc)
	for _, d := range dirs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join(proc, d.Name(), "comm"))
		if name := strings.TrimSpace(string(comm)); slices.Contains(kubelets, name) {
			return fmt.Sprintf("%s (process %s)", name, d.Name())
		}
	}
	return ""
}

// DriverOf returns the driver that made the cgroup of a pod; cgroups.None: it has none below root.
// mount is where the kernel shows cgroups.
func DriverOf(mount, root string, p *v1.Pod) cgroups.Driver {
	all := hierarchies(mount)
	for _, d := range []cgroups.Driver{cgroups.Cgroupfs, cgroups.Systemd} {
		path := cgroups.Names{Driver: d, Root: root}.Pod(podspec.CgroupClass(p), string(p.UID))
		for _, dir := range all {
			if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
				return d
			}
		}
	}
	return cgroups.None
}

// hierarchies returns the roots of the hierarchies of cgroups: one of version 2, or those of
// version 1. A folder in one of version 2 is a cgroup.
func hierarchies(mount string) []string {
	if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil {
		return []string{mount}
	}
	all, _ := filepath.Glob(filepath.Join(mount, "*"))
	return all
}
