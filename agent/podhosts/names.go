package podhosts

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/podspec"
	"monopod/manifests"
)

// look reads the pods and their addresses from the store. k.mu is held.
func (k *Keeper) look() {
	k.pods = nil
	var names []podspec.NamedPod
	known := map[types.UID]bool{}
	all := append(k.config.Store.Pods(), k.unreported()...)
	slices.SortFunc(all, func(a, b *v1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, p := range all {
		named := podspec.NamedPod{Namespace: p.Namespace, Name: strings.TrimSuffix(p.Name, k.config.Suffix), IPs: addresses(p)}
		f := k.files[p.UID]
		switch {
		case f == nil:
		case len(named.IPs) > 0 || hasEnded(p):
			f.ips = nil
		default:
			named.IPs = f.ips
		}
		names = append(names, named)
		if len(named.IPs) > 0 {
			k.pods = append(k.pods, reader{p, named.IPs})
		}
		known[p.UID] = true
	}
	k.names = podspec.NamesOfPods(names)
	maps.DeleteFunc(k.files, func(uid types.UID, _ *file) bool { return !known[uid] })
}

// unreported returns the pods of previous agents with their last reports, until this agent reports
// them. k.mu is held.
func (k *Keeper) unreported() (pods []*v1.Pod) {
	k.former = slices.DeleteFunc(k.former, func(key manifests.Key) bool {
		p, there := k.config.Store.Previous(key.String())
		if there {
			pods = append(pods, p)
		}
		return !there
	})
	return pods
}

// addresses returns the addresses of a pod; none while it has no sandbox: another pod may have them
// by then.
func addresses(p *v1.Pod) (ips []string) {
	if hasEnded(p) {
		return nil
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReadyToStartContainers && c.Status == v1.ConditionFalse {
			return nil
		}
	}
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

func hasEnded(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// sum identifies the result of k.look, and whether pods are listed at all. It is not 0.
func (k *Keeper) sum() uint64 {
	if !k.config.On() {
		return k.sumOff()
	}
	var h maphash.Hash
	h.SetSeed(k.seed)
	for _, p := range k.pods {
		h.WriteString(string(p.UID) + "\n")
	}
	for _, p := range k.names {
		h.WriteString(p.Namespace + "/" + p.Name + " " + strings.Join(p.IPs, " ") + "\n")
	}
	return h.Sum64() | 1
}

// sumOff is the sum while pods are not listed.
func (k *Keeper) sumOff() uint64 { return maphash.String(k.seed, "off")&^1 | 2 }

// section returns the section of a pod's hosts file, whose other lines are own, and its
// sum, which is not 0. k.mu is held.
func (k *Keeper) section(p *v1.Pod, own []byte) ([]byte, uint64) {
	var section []byte
	if k.config.On() {
		section = k.names.Section(p, own)
	}
	return section, maphash.Bytes(k.seed, section) | 1
}
