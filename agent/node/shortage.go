package node

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/message"
)

// shortage is a resource of which less is available than its threshold.
type shortage struct {
	name  string // of the signal
	seen  Signal
	least Threshold // of evictionHard
}

// missing returns how much is missing to the threshold; the resource is short if it is above 0.
func (s shortage) missing() int64 {
	least := s.least.of(*resource.NewQuantity(s.seen.Capacity, resource.BinarySI))
	return least.Value() - s.seen.Available
}

// shortages returns, by condition, a text for each cause of a shortage.
func (r *Reporter) shortages(seen Signals) map[v1.NodeConditionType][]message.Text {
	short, out := map[string]shortage{}, map[v1.NodeConditionType][]message.Text{}
	for _, name := range slices.Sorted(maps.Keys(r.Machine.Cfg.Pressure)) {
		s := shortage{name, seen[name], r.Machine.Cfg.Pressure[name]}
		if at := s.cause(); seen[name].Capacity > 0 && s.missing() > max(short[at].missing(), 0) {
			short[at] = s
		}
	}
	for _, at := range slices.Sorted(maps.Keys(short)) {
		kind := PressureOf[short[at].name]
		out[kind] = append(out[kind], short[at].text())
	}
	images := seen["imagefs.available"]
	_, isSaid := short[shortage{name: "imagefs.available", seen: images}.cause()]
	if most, full := r.Full(); full && !isSaid {
		out[v1.NodeDiskPressure] = append(out[v1.NodeDiskPressure], fullText(images, most))
	}
	return out
}

// cause returns a key that is equal for signals with the same cause, such as the room on one disk.
func (s shortage) cause() string {
	return cmp.Or(s.seen.Disk, string(PressureOf[s.name])) + "\x00" + words[s.name].what
}

// words are the unit of a signal and what ends its shortage.
var words = map[string]struct {
	what   string
	remedy message.Text
}{
	"memory.available":   {"", message.Fixed("stop something, or lower the memory limits of pods")},
	"nodefs.available":   {"", message.Fixed("make room there")},
	"imagefs.available":  {"", message.Fixed("make room there")},
	"nodefs.inodesFree":  {"inodes", message.Fixed("remove files there")},
	"imagefs.inodesFree": {"inodes", message.Fixed("remove files there")},
	"pid.available":      {"processes", message.Fixed("stop what starts so many")},
}

// text returns the message: what is short, by which setting, and what ends it.
func (s shortage) text() message.Text {
	least := s.least.Amount.String()
	if s.least.Share > 0 {
		least = strconv.FormatFloat(100*s.least.Share, 'g', 3, 64) + "%"
	}
	return message.Of("%s, less than the %s of evictionHard %s: %s", s.seen.left(words[s.name].what),
		message.Name(least), message.Name(s.name), words[s.name].remedy)
}

// fullText returns the message that the disk of the images is fuller than the setting, in percent,
// and that no image can be removed.
func fullText(images Signal, most int) message.Text {
	if images.Capacity == 0 {
		return message.Of("the disk of the images is more than %d%% full (imageGCHighThresholdPercent), and no image there can go: make room there", message.Number(most))
	}
	return message.Of("%s, imageGCHighThresholdPercent is %d, and no image there can go: make room there", images.left(""), message.Number(most))
}

// left returns the text of the available part, rounded down so that it does not change with each
// byte.
func (s Signal) left(what string) message.Text {
	share := strconv.FormatInt(100*max(s.Available, 0)/s.Capacity, 10)
	if tenths := 1000 * max(s.Available, 0) / s.Capacity; tenths < 10 {
		share = "0." + strconv.FormatInt(tenths, 10)
	}
	text := message.Of("%s%% of %s is left", message.Name(share), message.Size(uint64(s.Capacity)))
	if what != "" {
		text = message.Of("%s%% of %d %s are left", message.Name(share), message.Number(s.Capacity), message.Name(what))
	}
	if s.Disk != "" {
		text = message.Of("%s on the disk at %s", text, message.Private(s.Disk))
	}
	return text
}
