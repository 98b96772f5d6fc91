package node

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/podspec"
	"monopod/agent/stats"
)

// maxPods is the default of KubeletConfiguration's maxPods.
const maxPods = 110

// Facts is what admission needs to know of the node. The node has nothing of a resource that is not
// listed.
type Facts struct {
	Capacity    v1.ResourceList
	Allocatable v1.ResourceList // the part of it that pods can use
	Labels      map[string]string
	Kernel      Kernel
	Sysctls     []string // allowed beyond the safe ones: names, or prefixes that end in *
	AppArmor    bool     // the kernel enforces it

	RuntimeAsked bool // the runtime has answered; before that its features are not known
	StrictGroups bool // it supports supplementalGroupsPolicy Strict
}

// Same reports whether both facts are equal.
func (f *Facts) Same(g *Facts) bool {
	return podspec.EqualAmounts(f.Capacity, g.Capacity) && podspec.EqualAmounts(f.Allocatable, g.Allocatable) &&
		maps.Equal(f.Labels, g.Labels) && slices.Equal(f.Sysctls, g.Sysctls) && f.Kernel == g.Kernel && f.AppArmor == g.AppArmor &&
		f.RuntimeAsked == g.RuntimeAsked && f.StrictGroups == g.StrictGroups
}

// ReadFacts reads the present facts of the machine.
func ReadFacts(cfg NodeSettings) (Facts, error) {
	capacity, err := readCapacity(cfg)
	if err != nil {
		return Facts{}, err
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Facts{}, fmt.Errorf("kernel version: %w", err)
	}
	armor, _ := stats.ReadFile("/sys/module/apparmor/parameters/enabled")
	return Facts{
		Capacity:    capacity,
		Allocatable: Allocatable(capacity, cfg.Reserved.Of(capacity)),
		Labels:      nodeLabels(cfg.NodeName, cfg.NodeLabels),
		Kernel:      parseKernel(unix.ByteSliceToString(u.Release[:])),
		Sysctls:     cfg.AllowedUnsafeSysctls,
		AppArmor:    strings.HasPrefix(armor, "Y"),
	}, nil
}

// readCapacity returns the capacity of the machine; ephemeral storage is the file
// system of the root dir. Amounts are in bytes, except cpu (cores) and pods.
func readCapacity(cfg NodeSettings) (v1.ResourceList, error) {
	memory, err := memoryTotal("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	disk, err := stats.FreeOn(cfg.Root)
	if err != nil {
		return nil, err
	}
	out := HugePages(hugePagesDir)
	cpus := onlineCPUs("/sys/devices/system/cpu/online")
	out[v1.ResourceCPU] = *resource.NewQuantity(cpus, resource.DecimalSI)
	out[v1.ResourceMemory] = *resource.NewQuantity(memory, resource.BinarySI)
	out[v1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(disk.Capacity), resource.BinarySI)
	out[v1.ResourcePods] = *resource.NewQuantity(cfg.PodsOn(cpus), resource.DecimalSI)
	return out, nil
}

// Allocatable returns the part of the capacity that pods can use: without what is reserved, and
// memory without huge pages.
func Allocatable(capacity, reserved v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for name, q := range capacity {
		left := q.DeepCopy()
		left.Sub(reserved[name])
		out[name] = left
	}
	memory := out[v1.ResourceMemory]
	for name, q := range capacity {
		if strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			memory.Sub(q)
		}
	}
	out[v1.ResourceMemory] = memory
	for name, q := range out {
		if q.Sign() < 0 {
			out[name] = *resource.NewQuantity(0, q.Format)
		}
	}
	return out
}

// nodeLabels returns the labels that every node has, and those of the settings.
func nodeLabels(name string, set map[string]string) map[string]string {
	labels := map[string]string{
		v1.LabelHostname: name,
		v1.LabelOSStable: runtime.GOOS, v1.LabelArchStable: runtime.GOARCH,
		"beta.kubernetes.io/os": runtime.GOOS, "beta.kubernetes.io/arch": runtime.GOARCH,
	}
	maps.Copy(labels, set)
	return labels
}

// onlineCPUs counts the logical CPUs in a file such as "0-3,6". The agent itself may be limited to
// fewer, its pods are not.
func onlineCPUs(path string) int64 {
	list, err := stats.ReadFile(path)
	if n := countCPUs(strings.TrimSpace(list)); err == nil && n > 0 {
		return n
	}
	return int64(runtime.NumCPU())
}

// hugePageSizes returns the folders of the machine's huge pages by their size, in KiB.
func hugePageSizes(dir string) map[int64]string {
	out := map[int64]string{}
	all, _ := filepath.Glob(filepath.Join(dir, "hugepages-*kB"))
	for _, d := range all {
		var kib int64
		if _, err := fmt.Sscanf(filepath.Base(d), "hugepages-%dkB", &kib); err == nil {
			out[kib] = d
		}
	}
	return out
}

// HugePages returns for each page size the memory reserved for huge pages, as
// hugepages-2Mi.
func HugePages(dir string) v1.ResourceList {
	out := v1.ResourceList{}
	for kib, d := range hugePageSizes(dir) {
		text, _ := stats.ReadFile(filepath.Join(d, "nr_hugepages"))
		count, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			continue
		}
		size := resource.NewQuantity(kib<<10, resource.BinarySI)
		out[v1.ResourceName(v1.ResourceHugePagesPrefix+size.String())] = *resource.NewQuantity(count*size.Value(), resource.BinarySI)
	}
	return out
}
