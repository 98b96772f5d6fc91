package devices

import (
	"maps"
	"reflect"
	"time"

	"monopod/manifests/devicename"
)

// wanted is a device that is looked for.
type wanted struct {
	device devicename.Device
	until  time.Time // unless it is asked for again
}

// wantedFor is longer than containers and preparations wait until they try again.
const wantedFor = 10 * time.Minute

// await makes Run look for a device that is missing.
func (k *Keeper) await(d devicename.Device) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.missing[d.String()] = wanted{d, time.Now().Add(wantedFor)}
	k.woken.Wake()
}

// take takes what was seen of the machine, and reports whether anything came or went.
func (k *Keeper) take(m *Machine) (changed bool) {
	found := k.found()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range found {
		delete(k.missing, name)
		changed = true
	}
	maps.DeleteFunc(k.missing, func(_ string, w wanted) bool { return time.Now().After(w.until) })
	if reflect.DeepEqual(m, k.table.machine) {
		return changed
	}
	next := k.table.clone()
	next.machine = m
	k.table = next
	return true
}

// found returns the names of those missing devices that are there now.
func (k *Keeper) found() (names []string) {
	k.mu.Lock()
	all := maps.Clone(k.missing)
	k.mu.Unlock()
	for name, w := range all {
		if _, err := k.find(w.device); err == nil {
			names = append(names, name)
		}
	}
	return names
}
