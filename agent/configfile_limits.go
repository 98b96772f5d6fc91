package agent

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/cgroups"
	"monopod/manifests/decode"
)

// cgroups takes whether and how pods get cgroups. As with the kubelet a driver
// in the file counts only where the runtime does not say which is its own.
func (r *configReader) cgroups() {
	f := &r.file
	set(&r.to.CgroupRoot, f.CgroupRoot)
	if d := f.CgroupDriver; d != nil {
		switch *d {
		case "":
		case driverAuto, driverNone:
			r.to.CgroupDriver = *d
		case string(cgroups.Cgroupfs), string(cgroups.Systemd):
			r.to.CgroupDriver, r.to.FallbackDriver = driverAuto, *d
		default:
			r.Refuse("cgroupDriver", "%q: choose %s", *d, strings.Join(cgroupDrivers, ", "))
		}
	}
	switch q := f.CgroupsPerQOS; {
	case q != nil && !*q:
		r.to.CgroupDriver = driverNone
	case q != nil && r.to.CgroupDriver == driverNone:
		r.Refuse("cgroupsPerQOS", "true contradicts cgroupDriver: none")
	}
}

// reserve takes what pods do not get of the machine.
func (r *configReader) reserve() {
	f := &r.file
	to := &r.to.Reserved
	to.System = r.amountsOf("systemReserved", f.SystemReserved)
	to.Agent = r.amountsOf("kubeReserved", f.KubeReserved)
	to.Free, r.to.Pressure = r.thresholds()
	if f.EnforceNodeAllocatable == nil {
		return
	}
	to.Unenforced = !slices.Contains(*f.EnforceNodeAllocatable, "pods")
	for k, level := range *f.EnforceNodeAllocatable {
		at := fmt.Sprintf("enforceNodeAllocatable[%d]", k)
		switch strings.TrimSuffix(level, "-compressible") {
		case "pods":
		case "none":
			if len(*f.EnforceNodeAllocatable) > 1 {
				r.Refuse(at, "none stands alone")
			}
		case "system-reserved", "kube-reserved":
			r.Warn(at, "%s has no effect here", level)
		default:
			r.Refuse(at, "%q: choose pods or none", level)
		}
	}
}

// amountsOf returns a reservation of amounts.
func (r *configReader) amountsOf(field string, in map[string]resource.Quantity) v1.ResourceList {
	out := v1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		q := in[name]
		at := field + "[" + name + "]"
		switch v1.ResourceName(name) {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, reservedPids:
			if q.Sign() < 0 {
				r.Refuse(at, "%s: must not be negative", q.String())
			}
			out[v1.ResourceName(name)] = q
		default:
			r.Refuse(at, "only cpu, memory, ephemeral-storage and pid can be reserved")
		}
	}
	return out
}

// thresholds returns what of evictionHard is kept from pods, and what the node
// reports pressure by: nil if that is not given.
func (r *configReader) thresholds() (map[v1.ResourceName]Threshold, map[string]Threshold) {
	kept := map[string]v1.ResourceName{"memory.available": v1.ResourceMemory, "nodefs.available": v1.ResourceEphemeralStorage}
	others := []string{"containerfs.available", "containerfs.inodesFree", "allocatableMemory.available"}
	free, pressure := map[v1.ResourceName]Threshold{}, map[string]Threshold{}
	for _, signal := range slices.Sorted(maps.Keys(r.file.EvictionHard)) {
		at, text := "evictionHard["+signal+"]", r.file.EvictionHard[signal]
		counts := pressureOf[signal] != ""
		if !counts && !slices.Contains(others, signal) {
			r.Refuse(at, "there is no signal %q: choose memory.available or nodefs.available", signal)
			continue
		}
		t, err := threshold(text)
		switch {
		case err != nil:
			r.Refuse(at, "%q: %v", text, err)
		case !counts:
			r.Warn(at, "has no effect here")
		case t != nil:
			pressure[signal] = *t
			if name := kept[signal]; name != "" {
				free[name] = *t
			}
		}
	}
	if len(r.file.EvictionHard) == 0 {
		return free, nil
	}
	return free, pressure
}

// threshold reads an amount or a percentage; nil for 0% and 100%, which mean
// none to the kubelet.
func threshold(text string) (*Threshold, error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil || !(percent >= 0 && percent <= 100):
			return nil, fmt.Errorf("must be between 0%% and 100%%")
		case percent == 0 || percent == 100:
			return nil, nil
		}
		return &Threshold{Share: percent / 100}, nil
	}
	q, err := decode.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		return nil, fmt.Errorf("must be a quantity above 0 such as 100Mi, or a percentage such as 10%%")
	}
	return &Threshold{Amount: q}, nil
}

// amounts takes the numbers that bound pods.
func (r *configReader) amounts() {
	f := &r.file
	if f.MaxPods != nil && *f.MaxPods < 0 {
		r.Refuse("maxPods", "%d: must not be negative; 0 is the default", *f.MaxPods)
	}
	if f.PodsPerCore != nil && *f.PodsPerCore < 0 {
		r.Refuse("podsPerCore", "%d: must not be negative; 0 is no bound", *f.PodsPerCore)
	}
	set(&r.to.MaxPods, f.MaxPods)
	set(&r.to.PodsPerCore, f.PodsPerCore)
	if f.PodPidsLimit != nil {
		r.to.PodPids = max(*f.PodPidsLimit, 0)
	}
	if f.CPUCFSQuota != nil {
		r.to.NoCFSQuota = !*f.CPUCFSQuota
	}
	if d := r.duration("cpuCFSQuotaPeriod", f.CPUCFSQuotaPeriod, time.Millisecond, time.Second); d != 0 {
		r.to.CFSPeriod = d
	}
	set(&r.to.SingleProcessOOMKill, f.SingleProcessOOMKill)
	set(&r.to.FailSwapOn, f.FailSwapOn)
}
