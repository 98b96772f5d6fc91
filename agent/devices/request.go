package devices

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/manifests/devicename"
)

// Request is what a container requests of a resource.
type Request struct {
	Container string // "": the pod requests it for all of its containers together
	Resource  string
	Count     int
	Device    *devicename.Device // that the name of the resource is; nil: it is a resource of the settings
	Real      string             // the path of Device without links, of a container that is to be made; else ""
	Init      bool               // the container ends before those after it start
	At        int                // the place of the container, in the order of their starts
}

// Requests returns what the containers of a pod request of the resources that are known, and by the
// names of devices, in the order in which they get it. The devices in its annotations are first.
func Requests(p *v1.Pod, isKnown func(resource string) bool) (all []Request) {
	for _, name := range devicename.CDIOf(p.Annotations) {
		all = append(all, Request{Resource: name, Count: 1, Device: &devicename.Device{CDI: name}})
	}
	for at, c := range podspec.AllContainers(p) {
		isInit := podspec.IsInitName(p, c.Name) && !podspec.Restartable(c)
		amounts := amountsOf(c)
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			r := Request{Container: c.Name, Resource: string(name), Count: amounts[name], Init: isInit, At: at}
			r.Device = named(string(name))
			if r.Device != nil {
				r.Count = 1
			}
			if r.Device != nil || isKnown(string(name)) {
				all = append(all, r)
			}
		}
	}
	return all
}

// amountsOf returns the resources of which a container requests anything. A device that is
// requested by its name needs no limit, as in podman kube play.
func amountsOf(c *v1.Container) map[v1.ResourceName]int {
	var all map[v1.ResourceName]int
	for _, list := range []v1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name, amount := range list {
			if name != v1.ResourceCPU && name != v1.ResourceMemory && amount.Sign() > 0 {
				if all == nil {
					all = map[v1.ResourceName]int{}
				}
				all[name] = int(min(amount.Value(), most))
			}
		}
	}
	return all
}

// most is more than any machine has devices.
const most = 1 << 20

// named returns the device whose name a resource is; nil: it is none.
func named(resource string) *devicename.Device {
	if !devicename.Is(resource) {
		return nil
	}
	d, err := devicename.Parse(resource)
	if err != nil {
		return nil
	}
	return &d
}

// Named returns the devices that a container requests by their names: in its resources, and in the
// annotations of its pod.
func Named(p *v1.Pod, c *v1.Container) (all []devicename.Device) {
	for _, name := range slices.Sorted(maps.Keys(amountsOf(c))) {
		if d := named(string(name)); d != nil {
			all = append(all, *d)
		}
	}
	for _, name := range devicename.CDIOf(p.Annotations) {
		all = append(all, devicename.Device{CDI: name})
	}
	return all
}

// Concern reports whether the devices of the machine matter to a pod.
func (k *Keeper) Concern(p *v1.Pod) bool { return len(Requests(p, k.Has)) > 0 }
