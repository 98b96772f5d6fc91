package status

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Summary is what the node and its pods use, in the format of a kubelet's
// /stats/summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1). Nil values are
// unknown.
type Summary struct {
	Node NodeStats  `json:"node"`
	Pods []PodStats `json:"pods"`
}

// NodeStats is what the machine uses.
type NodeStats struct {
	NodeName         string           `json:"nodeName"`
	SystemContainers []ContainerStats `json:"systemContainers,omitempty"`
	StartTime        metav1.Time      `json:"startTime"`
	CPU              *CPUStats        `json:"cpu,omitempty"`
	Memory           *MemoryStats     `json:"memory,omitempty"`
	IO               *IOStats         `json:"io,omitempty"`
	Network          *NetworkStats    `json:"network,omitempty"`
	Fs               *FsStats         `json:"fs,omitempty"`
	Runtime          *RuntimeStats    `json:"runtime,omitempty"`
	Rlimit           *RlimitStats     `json:"rlimit,omitempty"`
	Swap             *SwapStats       `json:"swap,omitempty"`
}

// PodStats is what a pod uses.
type PodStats struct {
	PodRef           PodReference     `json:"podRef"`
	StartTime        metav1.Time      `json:"startTime"`
	Containers       []ContainerStats `json:"containers"`
	CPU              *CPUStats        `json:"cpu,omitempty"`
	Memory           *MemoryStats     `json:"memory,omitempty"`
	IO               *IOStats         `json:"io,omitempty"`
	Network          *NetworkStats    `json:"network,omitempty"`
	VolumeStats      []VolumeStats    `json:"volume,omitempty"`
	EphemeralStorage *FsStats         `json:"ephemeral-storage,omitempty"`
	ProcessStats     *ProcessStats    `json:"process_stats,omitempty"`
	Swap             *SwapStats       `json:"swap,omitempty"`
}

// PodReference names a pod.
type PodReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

// ContainerStats is what a container uses.
type ContainerStats struct {
	Name      string       `json:"name"`
	StartTime metav1.Time  `json:"startTime"`
	CPU       *CPUStats    `json:"cpu,omitempty"`
	Memory    *MemoryStats `json:"memory,omitempty"`
	IO        *IOStats     `json:"io,omitempty"`
	Rootfs    *FsStats     `json:"rootfs,omitempty"`
	Logs      *FsStats     `json:"logs,omitempty"`
	Swap      *SwapStats   `json:"swap,omitempty"`
}

// CPUStats is use of the processors.
type CPUStats struct {
	Time                 metav1.Time `json:"time"`
	UsageNanoCores       *uint64     `json:"usageNanoCores,omitempty"`
	UsageCoreNanoSeconds *uint64     `json:"usageCoreNanoSeconds,omitempty"`
	PSI                  *PSIStats   `json:"psi,omitempty"`
}

// MemoryStats is use of memory.
type MemoryStats struct {
	Time            metav1.Time `json:"time"`
	AvailableBytes  *uint64     `json:"availableBytes,omitempty"`
	UsageBytes      *uint64     `json:"usageBytes,omitempty"`
	WorkingSetBytes *uint64     `json:"workingSetBytes,omitempty"`
	RSSBytes        *uint64     `json:"rssBytes,omitempty"`
	PageFaults      *uint64     `json:"pageFaults,omitempty"`
	MajorPageFaults *uint64     `json:"majorPageFaults,omitempty"`
	PSI             *PSIStats   `json:"psi,omitempty"`
}

// IOStats is how long tasks waited for disks.
type IOStats struct {
	Time metav1.Time `json:"time"`
	PSI  *PSIStats   `json:"psi,omitempty"`
}

// PSIStats is how long all tasks, or some, waited for a resource.
type PSIStats struct {
	Full PSIData `json:"full"`
	Some PSIData `json:"some"`
}

// PSIData is microseconds and percentages.
type PSIData struct {
	Total  uint64  `json:"total"`
	Avg10  float64 `json:"avg10"`
	Avg60  float64 `json:"avg60"`
	Avg300 float64 `json:"avg300"`
}

// SwapStats is use of swap.
type SwapStats struct {
	Time               metav1.Time `json:"time"`
	SwapAvailableBytes *uint64     `json:"swapAvailableBytes,omitempty"`
	SwapUsageBytes     *uint64     `json:"swapUsageBytes,omitempty"`
}

// FsStats is a file system, or what something takes of one.
type FsStats struct {
	Time           metav1.Time `json:"time"`
	AvailableBytes *uint64     `json:"availableBytes,omitempty"`
	CapacityBytes  *uint64     `json:"capacityBytes,omitempty"`
	UsedBytes      *uint64     `json:"usedBytes,omitempty"`
	InodesFree     *uint64     `json:"inodesFree,omitempty"`
	Inodes         *uint64     `json:"inodes,omitempty"`
	InodesUsed     *uint64     `json:"inodesUsed,omitempty"`
}

// VolumeStats is what a volume takes.
type VolumeStats struct {
	FsStats `json:",inline"`
	Name    string `json:"name,omitempty"`
}

// RuntimeStats is the file systems of the container runtime.
type RuntimeStats struct {
	ImageFs     *FsStats `json:"imageFs,omitempty"`
	ContainerFs *FsStats `json:"containerFs,omitempty"`
}

// RlimitStats is how many processes and threads there are and may be.
type RlimitStats struct {
	Time                  metav1.Time `json:"time"`
	MaxPID                *int64      `json:"maxpid,omitempty"`
	NumOfRunningProcesses *int64      `json:"curproc,omitempty"`
}

// ProcessStats is the processes of a pod.
type ProcessStats struct {
	ProcessCount *uint64 `json:"process_count,omitempty"`
}

// NetworkStats is the traffic of the interfaces; the main one's is embedded.
type NetworkStats struct {
	Time           metav1.Time `json:"time"`
	InterfaceStats `json:",inline"`
	Interfaces     []InterfaceStats `json:"interfaces,omitempty"`
}

// InterfaceStats is what went over one interface.
type InterfaceStats struct {
	Name     string  `json:"name"`
	RxBytes  *uint64 `json:"rxBytes,omitempty"`
	RxErrors *uint64 `json:"rxErrors,omitempty"`
	TxBytes  *uint64 `json:"txBytes,omitempty"`
	TxErrors *uint64 `json:"txErrors,omitempty"`
}

// Images returns the file system of the images, nil if it is not known.
func (r *RuntimeStats) Images() *FsStats {
	if r == nil {
		return nil
	}
	return r.ImageFs
}

// Logs returns what the logs of all containers take, nil if it is not known.
func (p *PodStats) Logs() *FsStats {
	var sum *FsStats
	for i := range p.Containers {
		l := p.Containers[i].Logs
		if l == nil || l.UsedBytes == nil {
			continue
		}
		if sum == nil {
			sum = &FsStats{UsedBytes: new(uint64)}
		}
		*sum.UsedBytes += *l.UsedBytes
	}
	return sum
}
