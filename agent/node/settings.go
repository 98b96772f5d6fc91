package node

import (
	"cmp"
	"time"
)

// NodeSettings is what of the settings concerns the machine, and what pods get
// of it.
type NodeSettings struct {
	NodeName, Root, PodLogs string

	NodeLabels           map[string]string // besides those that every node has; wins over them
	AllowedUnsafeSysctls []string          // that pods may change beyond the safe ones: names, or prefixes that end in *
	Reserved             Reservations
	// Pressure is what shall be left, by the signals of KubeletConfiguration's
	// evictionHard: with less the node reports pressure.
	Pressure    map[string]Threshold
	MaxPods     int64 // default 110
	PodsPerCore int64 // bounds them too; 0: does not
	PodPids     int64 // processes and threads of each pod; 0: no limit

	ResolvConf    string   // "": pods get this machine as name server
	ClusterDNS    []string // name servers of pods with policy ClusterFirst; none: the machine's
	ClusterDomain string

	SeccompDefault       bool          // RuntimeDefault where a pod asks for nothing
	NoCFSQuota           bool          // do not enforce cpu limits
	CFSPeriod            time.Duration // in which they count
	SingleProcessOOMKill bool          // memory's end kills one process, not the container (cgroup v2)

	CgroupDriver   string // auto, cgroupfs, systemd or none
	FallbackDriver string // what auto is with a runtime that does not say its own; "" is cgroupfs
	CgroupRoot     string // the cgroup that holds kubepods
	OwnCgroup      string // that holds the agent's pods and no others; "": it is kubepods
	MayLackCgroups bool   // pods run without where they cannot be made
}

// PodsOn returns how many pods a node with that many cores holds.
func (s NodeSettings) PodsOn(cores int64) int64 {
	most := cmp.Or(s.MaxPods, maxPods)
	if s.PodsPerCore > 0 {
		return min(most, s.PodsPerCore*cores)
	}
	return most
}
