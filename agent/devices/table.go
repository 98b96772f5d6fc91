package devices

import (
	"maps"
	"slices"
	"strings"

	"monopod/agent/message"
)

// Table is which containers have which devices. It must not be used by two goroutines at once.
type Table struct {
	resources map[string]Resource
	dirs      []string // of CDI specifications
	machine   *Machine
	held      map[holding]share
}

// holding is a request that got its devices. Two versions of a pod never run at the same time: all
// of them together have what the largest has. What a version of the same uid does not request any
// more is that of another version, see leaving.
type holding struct {
	Pod       string // namespace/name
	Version   string // uid, or what stands for it
	Container string // "": the pod has it for all of them
	Resource  string
}

// share is what a holding has.
type share struct {
	ids  []string // of devices
	turn turn     // of its container
}

// turn is when a container of a pod runs.
type turn struct {
	at   int  // its place among the containers of the pod, in the order of their starts
	ends bool // before those after it start
}

// leaving follows the uid of a version in the name of what that had before its requests changed:
// containers may still run with it.
const leaving = " leaving"

func (h *holding) isLeaving() bool { return strings.HasSuffix(h.Version, leaving) }

// newTable returns the table of a machine without pods.
func newTable(s Settings, m *Machine) *Table {
	return &Table{resources: s.Resources, dirs: s.SpecDirs, machine: m, held: map[holding]share{}}
}

// Refusal is why a pod cannot have the devices that it requests.
type Refusal struct {
	Reason  string
	Message message.Text
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message.String() }

func (t *Table) clone() *Table {
	c := *t
	c.held = maps.Clone(t.held)
	return &c
}

// admit assigns devices to the containers of a version of a pod. What a container has stays, as far
// as it requests that. If the pod is refused, what its first containers got stays.
func (t *Table) admit(pod, version string, all []Request) *Refusal {
	t.keepRequested(pod, version, all)
	for k := range all {
		refusal := t.assign(pod, version, all, k)
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

// keepRequested takes what a version has and does not request from it. That is in use until clear, or,
// of a resource that the settings do not have any more, until its container is made again.
func (t *Table) keepRequested(pod, version string, all []Request) {
	for h, s := range t.held {
		if h.Pod != pod || h.Version != version {
			continue
		}
		k := slices.IndexFunc(all, func(r Request) bool { return r.Container == h.Container && r.Resource == h.Resource })
		_, isKnown := t.resources[h.Resource]
		switch {
		case k < 0 && !isKnown && named(h.Resource) == nil:
		case k < 0:
			t.leave(h, s)
			delete(t.held, h)
		case len(s.ids) > all[k].Count:
			n := all[k].Count
			t.leave(h, share{s.ids[n:], s.turn})
			s.ids = s.ids[:n:n]
			t.held[h] = s
		}
	}
}

// leave keeps what a holding does not have any more.
func (t *Table) leave(h holding, gone share) {
	h.Version += leaving
	ids := slices.Clone(t.held[h].ids)
	for _, id := range gone.ids {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	t.held[h] = share{ids, gone.turn}
}

// clear frees what the versions of a pod had before their requests changed, and reports whether that
// is anything.
func (t *Table) clear(pod string) (freed bool) {
	for h := range t.held {
		if h.Pod == pod && h.isLeaving() {
			delete(t.held, h)
			freed = true
		}
	}
	return freed
}

// assign gives one container what it requests of one resource.
func (t *Table) assign(pod, version string, all []Request, k int) *Refusal {
	r := all[k]
	h := holding{pod, version, r.Container, r.Resource}
	choices := t.choices(h, r)
	if r.Device != nil && len(choices) == 0 {
		return nil // the settings do not count it
	}
	has := slices.Clone(t.held[h].ids)
	for _, d := range choices {
		if len(has) < r.Count && !slices.Contains(has, d.ID) && t.isFree(d, h, all, k) {
			has = append(has, d.ID)
		}
	}
	if len(has) < r.Count {
		return t.refuse(h, r, choices)
	}
	t.held[h] = share{has, turn{at: r.At, ends: r.Init}}
	return nil
}

// choices returns the devices that a request may get, in the order of preference: those that other
// versions of the container have, those that other versions of the pod have, then all others.
func (t *Table) choices(h holding, r Request) []Device {
	all := t.machine.devicesOf(r.Resource)
	if len(all) == 0 && r.Real != "" {
		all = t.machine.named(r.Real)
	}
	rank := func(d Device) int {
		best := 2
		for other, s := range t.held {
			if other.Pod != h.Pod || other.Version == h.Version || !t.has(s.ids, d) {
				continue
			}
			best = min(best, 1)
			if other.Container == h.Container {
				best = 0
			}
		}
		return best
	}
	slices.SortStableFunc(all, func(a, b Device) int { return rank(a) - rank(b) })
	return all
}

// devicesOf returns the devices that a resource has, or that its name is.
func (m *Machine) devicesOf(resource string) []Device {
	d := named(resource)
	if d != nil {
		return m.named(d.String())
	}
	return slices.Clone(m.of[resource])
}

// named returns the devices of the settings that have a path or CDI name.
func (m *Machine) named(name string) (all []Device) {
	for _, resource := range slices.Sorted(maps.Keys(m.of)) {
		for _, d := range m.of[resource] {
			if (d.ID == name || d.Path == name) && !slices.ContainsFunc(all, func(o Device) bool { return o.key() == d.key() }) {
				all = append(all, d)
			}
		}
	}
	return all
}

// isFree reports whether a container may have a device beside those that have it.
func (t *Table) isFree(d Device, h holding, all []Request, k int) bool {
	places, bounded := t.machine.places[d.key()]
	if !bounded {
		return true
	}
	used := t.usedBeside(h.Pod, d)
	for other, s := range t.held {
		beside := other.Pod == h.Pod && other.Version == h.Version && other.Container != h.Container
		asOne := other.Container == "" || h.Container == ""
		if beside && !asOne && t.has(s.ids, d) && runTogether(other.Container, all, k) {
			used++
		}
	}
	return used < places
}

// usedBeside returns how many containers of other pods have a device at the same time.
func (t *Table) usedBeside(pod string, d Device) (used int) {
	type version struct{ pod, version string }
	turns, largest := map[version]map[string]turn{}, map[string]int{}
	for h, s := range t.held {
		if h.Pod == pod || !t.has(s.ids, d) {
			continue
		}
		v := version{h.Pod, h.Version}
		if turns[v] == nil {
			turns[v] = map[string]turn{}
		}
		turns[v][h.Container] = s.turn
	}
	for v, all := range turns {
		largest[v.pod] = max(largest[v.pod], together(all))
	}
	for _, n := range largest {
		used += n
	}
	return used
}

// together returns how many of the containers of a pod run at the same time at most. All of them are
// one if the pod has the device for them.
func together(all map[string]turn) (n int) {
	_, asOne := all[""]
	if asOne {
		return 1
	}
	for _, one := range all {
		beside := 0
		for _, other := range all {
			if other.at < one.at && !other.ends {
				beside++
			}
		}
		n = max(n, beside+1)
	}
	return n
}

// runTogether reports whether a container runs at the same time as that of a request of the same
// pod. An init container has ended before any container after it starts.
func runTogether(other string, all []Request, k int) bool {
	at := slices.IndexFunc(all, func(r Request) bool { return r.Container == other })
	if at < 0 {
		return false
	}
	return !all[min(at, k)].Init
}

// has reports whether a device is among those with the IDs, which may name it by another path.
func (t *Table) has(ids []string, d Device) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return id == d.ID || t.machine.keys[id] == d.key() })
}

// replaceMissing frees what a container has and is not there, or not of its resource any more, so that
// it gets another device.
func (t *Table) replaceMissing(pod, version, container string) {
	for h, s := range t.held {
		if h.Pod != pod || h.Version != version || h.Container != container {
			continue
		}
		all := t.machine.devicesOf(h.Resource)
		s.ids = slices.DeleteFunc(slices.Clone(s.ids), func(id string) bool {
			return !slices.ContainsFunc(all, func(d Device) bool { return t.has([]string{id}, d) })
		})
		t.held[h] = s
	}
}

// isHeld reports whether a version of a pod has any device.
func (t *Table) isHeld(pod, version string) bool {
	for h := range t.held {
		if h.Pod == pod && h.Version == version {
			return true
		}
	}
	return false
}

// keep frees what all versions of a pod have but these, and reports whether that is anything.
func (t *Table) keep(pod string, versions []string) (freed bool) {
	for h := range t.held {
		if h.Pod == pod && !slices.Contains(versions, strings.TrimSuffix(h.Version, leaving)) {
			delete(t.held, h)
			freed = true
		}
	}
	return freed
}

// hasMoreThan reports whether a request has a device that it does not have in another table.
func (t *Table) hasMoreThan(other *Table) bool {
	for h, s := range t.held {
		if slices.ContainsFunc(s.ids, func(id string) bool { return !slices.Contains(other.held[h].ids, id) }) {
			return true
		}
	}
	return false
}

// ReasonInUse is the reason of a pod that waits for a device that it requests by its name.
const ReasonInUse = "DeviceInUse"

// refuse says why a request cannot get enough of these devices.
func (t *Table) refuse(h holding, r Request, choices []Device) *Refusal {
	why := t.whyNot(h, r, choices)
	if r.Device != nil {
		return &Refusal{ReasonInUse, message.Of("the device %s is not free: %s", message.Private(r.Device.String()), why)}
	}
	used, capacity := 0, 0
	for _, d := range choices {
		used += t.usedBeside(h.Pod, d)
		capacity += max(1, t.machine.places[d.key()])
	}
	return &Refusal{"OutOf" + r.Resource, message.Of("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d: %s",
		message.Name(r.Resource), message.Number(r.Count), message.Number(used), message.Number(capacity), why)}
}

// whyNot says in words why there are too few devices, and what helps.
func (t *Table) whyNot(h holding, r Request, choices []Device) message.Text {
	if len(choices) == 0 {
		return message.Private(t.machine.lacks(r.Resource, t.resources[r.Resource], t.dirs))
	}
	var have []message.Text
	for _, d := range choices {
		for _, pod := range t.podsWith(d) {
			if pod != h.Pod {
				have = append(have, message.Of("%s has %s", message.Name(pod), message.Private(d.ID)))
			}
		}
	}
	if len(have) == 0 {
		return message.Of("of %s there is no more: connect more, or request fewer", message.Private(idsOf(choices)))
	}
	return message.Of("%s", message.Join(have, ", "))
}

// podsWith returns the pods that have a device.
func (t *Table) podsWith(d Device) []string {
	pods := map[string]bool{}
	for h, s := range t.held {
		if t.has(s.ids, d) {
			pods[h.Pod] = true
		}
	}
	return slices.Sorted(maps.Keys(pods))
}

func idsOf(all []Device) string {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.ID)
	}
	return strings.Join(ids, ", ")
}
