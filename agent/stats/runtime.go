package stats

import (
	"context"
	"errors"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
)

// askRuntime requests from the runtime the usage of pods whose cgroups cannot be found.
func (c *Collector) askRuntime(ctx context.Context, s *sample) error {
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	containers, err := c.config.CRI.ContainerStats(ctx, c.config.Labels())
	byID := map[string]*rt.ContainerStats{}
	for _, k := range containers {
		byID[k.GetAttributes().GetId()] = k
	}
	sandboxes, failed := c.config.CRI.SandboxStats(ctx, c.config.Labels())
	if cri.Unimplemented(failed) {
		failed = nil // pods have the sum of their containers, and no network
	}
	byUID := map[string]*rt.PodSandboxStats{}
	for _, b := range sandboxes {
		byUID[b.GetAttributes().GetMetadata().GetUid()] = b
	}
	for _, p := range s.Pods {
		for _, k := range p.Containers {
			if told := byID[k.ID]; k.Use == nil && told != nil {
				k.Use = useOf(told.GetCpu(), told.GetMemory(), told.GetSwap())
			}
		}
		told := byUID[string(p.UID)]
		if p.Use == nil {
			p.Use = p.sum()
			if linux := told.GetLinux(); linux.GetCpu() != nil || linux.GetMemory() != nil {
				p.Use = useOf(linux.GetCpu(), linux.GetMemory(), nil)
			}
			if n := told.GetLinux().GetProcess().GetProcessCount(); n != nil && p.Use != nil {
				p.Use.Processes = known(n.Value)
			}
		}
		if p.Sandbox == "" {
			p.Sandbox = told.GetAttributes().GetId()
		}
		if p.Links == nil && !p.Spec.HostNetwork {
			p.Links = linksOf(told.GetLinux().GetNetwork())
		}
	}
	return errors.Join(err, failed)
}

// sum returns the total usage of the containers; nil if nothing is known.
func (p *podUse) sum() *use {
	var sum *use
	for _, k := range p.Containers {
		if k.Use == nil {
			continue
		}
		if sum == nil {
			sum = &use{}
		}
		sum.Time = k.Use.Time
		sum.CPU, sum.Nano = plus(sum.CPU, k.Use.CPU), plus(sum.Nano, k.Use.Nano)
		sum.Memory, sum.WorkingSet, sum.RSS = plus(sum.Memory, k.Use.Memory), plus(sum.WorkingSet, k.Use.WorkingSet), plus(sum.RSS, k.Use.RSS)
		sum.Swap, sum.Faults, sum.MajorFaults = plus(sum.Swap, k.Use.Swap), plus(sum.Faults, k.Use.Faults), plus(sum.MajorFaults, k.Use.MajorFaults)
	}
	return sum
}

func useOf(cpu *rt.CpuUsage, memory *rt.MemoryUsage, swap *rt.SwapUsage) *use {
	u := &use{Time: time.Now()}
	if at := cpu.GetTimestamp(); at > 0 {
		u.Time = time.Unix(0, at)
	}
	u.CPU, u.Nano = value(cpu.GetUsageCoreNanoSeconds()), value(cpu.GetUsageNanoCores())
	u.Memory, u.WorkingSet, u.RSS = value(memory.GetUsageBytes()), value(memory.GetWorkingSetBytes()), value(memory.GetRssBytes())
	u.Faults, u.MajorFaults = value(memory.GetPageFaults()), value(memory.GetMajorPageFaults())
	if available := value(memory.GetAvailableBytes()); available != nil && *available > 0 {
		u.MemoryLimit = plus(u.WorkingSet, available)
	}
	if u.Swap = value(swap.GetSwapUsageBytes()); u.Swap != nil {
		u.SwapLimit = plus(u.Swap, value(swap.GetSwapAvailableBytes()))
	}
	return u
}

func value(v *rt.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	return known(v.Value)
}

func linksOf(n *rt.NetworkUsage) []link {
	var out []link
	if d := n.GetDefaultInterface(); d != nil {
		out = append(out, linkOf(d))
	}
	for _, i := range n.GetInterfaces() {
		if i.GetName() != n.GetDefaultInterface().GetName() {
			out = append(out, linkOf(i))
		}
	}
	return out
}

func linkOf(i *rt.NetworkInterfaceUsage) link {
	return link{Name: i.GetName(), RxBytes: i.GetRxBytes().GetValue(), RxErrs: i.GetRxErrors().GetValue(),
		TxBytes: i.GetTxBytes().GetValue(), TxErrs: i.GetTxErrors().GetValue()}
}
