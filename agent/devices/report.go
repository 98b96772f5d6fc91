package devices

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/status"
)

// List returns the devices of all resources, and which containers have them, sorted.
func (k *Keeper) List() (all []status.Device) {
	if !k.Counts() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(k.settings.Resources)) {
		ids := map[string]bool{}
		for _, d := range k.table.machine.of[name] {
			ids[d.ID] = true
		}
		for _, id := range slices.Sorted(maps.Keys(k.table.withHeld(name, ids))) {
			all = append(all, status.Device{Resource: name, Device: id, Missing: k.table.machine.keys[id] == "", Holders: k.table.holders(id)})
		}
	}
	return all
}

// withHeld returns the IDs of a resource, and those that containers have.
func (t *Table) withHeld(resource string, ids map[string]bool) map[string]bool {
	all := maps.Clone(ids)
	for h, s := range t.held {
		if h.Resource == resource {
			for _, id := range s.ids {
				all[t.currentID(resource, id)] = true
			}
		}
	}
	return all
}

// currentID returns the ID under which a resource has a device now; a container may have it by another
// path.
func (t *Table) currentID(resource, id string) string {
	for _, d := range t.machine.of[resource] {
		if t.has([]string{id}, d) {
			return d.ID
		}
	}
	return id
}

// holders returns the containers, and pods, that have a device, by whatever path.
func (t *Table) holders(id string) []string {
	all, d := map[string]bool{}, Device{ID: id, Path: t.machine.keys[id]}
	for h, s := range t.held {
		if t.has(s.ids, d) {
			all[strings.TrimSuffix(h.Pod+"/"+h.Container, "/")] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Own returns the devices that a container of a pod has of each resource of the settings.
func (k *Keeper) Own(pod, uid, container string) map[string][]string {
	if !k.Counts() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var all map[string][]string
	for h, s := range k.table.held {
		if h.Pod == pod && h.Version == uid && h.Container == container && k.Has(h.Resource) {
			if all == nil {
				all = map[string][]string{}
			}
			for _, id := range s.ids {
				all[h.Resource] = append(all[h.Resource], k.table.currentID(h.Resource, id))
			}
		}
	}
	return all
}

// Allocatable returns the devices that containers can have, by resource.
func (k *Keeper) Allocatable() map[string][]string {
	all := map[string][]string{}
	for _, s := range k.List() {
		if !s.Missing {
			all[s.Resource] = append(all[s.Resource], s.Device)
		}
	}
	return all
}

// Capacity returns how many containers can have a device of each resource: of those that are
// shared, one of each pod for which the node has room.
func (k *Keeper) Capacity(pods int64) v1.ResourceList {
	if !k.Counts() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	out := v1.ResourceList{}
	for name := range k.settings.Resources {
		n := int64(0)
		for _, d := range k.table.machine.of[name] {
			places, bounded := k.table.machine.places[d.key()]
			if !bounded {
				n += pods
			}
			n += int64(places)
		}
		out[v1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return out
}
