package node

import (
	"cmp"
	"time"
)

// NodeSettings are the settings of the machine and of what pods can use of it.
type NodeSettings struct {
	NodeName, Root, PodLogs string

	NodeLabels           map[string]string // added to those that every node has; they override those
	AllowedUnsafeSysctls []string          // sysctls that pods may change beyond the safe ones: names, or prefixes that end in *
	Reserved             Reservations
	// Pressure holds thresholds by the signals of KubeletConfiguration's evictionHard: below them
	// the node reports pressure.
	Pressure    map[string]Threshold
	MaxPods     int64 // default 110
	PodsPerCore int64 // a second limit; 0: none
	PodPids     int64 // processes and threads of each pod; 0: no limit

	IPs []string // the machine's addresses, the main one first; none: that of the default route

	ResolvConf    string   // "": pods get this machine as name server
	ClusterDNS    []string // name servers of pods with policy ClusterFirst; none: the machine's
	ClusterDomain string

	SeccompDefault       bool          // RuntimeDefault for pods without a profile
	NoCFSQuota           bool          // do not enforce cpu limits
	CFSPeriod            time.Duration // the period of cpu limits
	ExclusiveCPUs        bool          // containers can have CPUs of their own
	SingleProcessOOMKill bool          // out of memory kills one process, not the container (cgroup v2)

	CgroupDriver   string // auto, cgroupfs, systemd or none
	FallbackDriver string // of auto with a runtime that does not report its driver; "" is cgroupfs
	CgroupRoot     string // the cgroup that holds kubepods
	OwnCgroup      string // holds only the pods of this agent; "": kubepods does
	MayLackCgroups bool   // pods run without cgroups where these cannot be created
}

// PodsOn returns how many pods a node with that many cores may have.
func (s NodeSettings) PodsOn(cores int64) int64 {
	most := cmp.Or(s.MaxPods, maxPods)
	if s.PodsPerCore > 0 {
		return min(most, s.PodsPerCore*cores)
	}
	return most
}
