package node

import (
	"errors"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/events"
	"monopod/agent/message"
	"monopod/agent/stats"
)

// PressureFor is how long a pressure condition stays after the pressure ended
// (KubeletConfiguration: evictionPressureTransitionPeriod).
const PressureFor = 5 * time.Minute

// Signals are the resources that may run out, by the kubelet's names.
type Signals map[string]Signal

// Signal is the available part of a resource and its capacity.
type Signal struct {
	Available, Capacity int64
	Disk                string // mount point of the disk that has it; "": it is not on a disk
}

// PressureOf maps each signal to its node condition.
var PressureOf = map[string]v1.NodeConditionType{
	"memory.available": v1.NodeMemoryPressure,
	"nodefs.available": v1.NodeDiskPressure, "nodefs.inodesFree": v1.NodeDiskPressure,
	"imagefs.available": v1.NodeDiskPressure, "imagefs.inodesFree": v1.NodeDiskPressure,
	"pid.available": v1.NodePIDPressure,
}

// DefaultPressure is the kubelet's default of evictionHard.
func DefaultPressure() map[string]Threshold {
	return map[string]Threshold{
		"memory.available": {Amount: resource.MustParse("100Mi")},
		"nodefs.available": {Share: 0.1}, "nodefs.inodesFree": {Share: 0.05},
		"imagefs.available": {Share: 0.15}, "imagefs.inodesFree": {Share: 0.05},
	}
}

// ReadSignals reads the signals. It leaves out those that cannot be read and returns why.
func ReadSignals(root, images string) (Signals, error) {
	out := Signals{}
	total, used, failed := stats.Host{}.Memory()
	if failed == nil {
		out["memory.available"] = Signal{Available: int64(total - min(used, total)), Capacity: int64(total)}
	}
	now, most, err := stats.Host{}.Tasks()
	if err == nil {
		out["pid.available"] = Signal{Available: int64(most) - int64(now), Capacity: int64(most)}
	}
	failed = errors.Join(failed, err)
	for name, dir := range map[string]string{"nodefs": root, "imagefs": images} {
		if dir == "" {
			continue
		}
		free, err := stats.FreeOn(dir)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		disk := stats.MountOf(dir)
		out[name+".available"] = Signal{int64(free.Available), int64(free.Capacity), disk}
		if free.Inodes > 0 {
			out[name+".inodesFree"] = Signal{int64(free.InodesFree), int64(free.Inodes), disk}
		}
	}
	return out, failed
}

// pressure is a condition about a resource that may run out.
type pressure struct {
	kind    v1.NodeConditionType
	subject message.Text // of the message while the condition is true
	yes, no why          // yes: it is true although nothing is short any more
}

var pressures = []pressure{
	{v1.NodeMemoryPressure, message.Fixed("memory pressure"),
		why{"KubeletHasInsufficientMemory", message.Fixed("enough memory is free again; the condition ends 5 min after that")},
		why{"KubeletHasSufficientMemory", message.Fixed("kubelet has sufficient memory available")}},
	{v1.NodeDiskPressure, message.Fixed("disk pressure"),
		why{"KubeletHasDiskPressure", message.Fixed("the disks have room again; the condition ends 5 min after that")},
		why{"KubeletHasNoDiskPressure", message.Fixed("kubelet has no disk pressure")}},
	{v1.NodePIDPressure, message.Fixed("process pressure"),
		why{"KubeletHasInsufficientPID", message.Fixed("processes can be started again; the condition ends 5 min after that")},
		why{"KubeletHasSufficientPID", message.Fixed("kubelet has sufficient PID available")}},
}

// text returns the message of the condition, with what is short.
func (p pressure) text(short []message.Text, stands bool) message.Text {
	switch {
	case !stands:
		return p.no.said
	case len(short) == 0:
		return message.Of("%s: %s", p.subject, p.yes.said)
	}
	return message.Of("%s: %s", p.subject, message.Join(short, "; "))
}

// conditionsOf returns the node's conditions with the heartbeat beat, and what all clients may read
// of their messages.
func (r *Reporter) conditionsOf(seen Signals, now, beat time.Time) ([]v1.NodeCondition, message.Book) {
	public, said := message.Book{}, map[v1.NodeConditionType]message.Text{}
	short := r.shortages(seen)
	var all []v1.NodeCondition
	for _, p := range pressures {
		if len(short[p.kind]) > 0 {
			r.Pressed[p.kind] = now
		}
		at, ever := r.Pressed[p.kind]
		c := v1.NodeCondition{Type: p.kind, Status: v1.ConditionFalse, Reason: p.no.reason}
		if ever && now.Sub(at) < PressureFor {
			c.Status, c.Reason = v1.ConditionTrue, p.yes.reason
		}
		said[p.kind] = p.text(short[p.kind], c.Status == v1.ConditionTrue)
		c.Message = public.Note(said[p.kind])
		all = append(all, c)
	}
	all = append(all, v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: public.Note(message.Fixed("kubelet is posting ready status"))})
	wrong := r.Runtime.NotReady()
	if r.Down != nil && r.Down() {
		wrong = append(slices.Clone(wrong), message.Fixed("node is shutting down"))
	}
	if len(wrong) > 0 {
		ready := &all[len(all)-1]
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "KubeletNotReady", public.Note(message.Join(wrong, "; "))
	}
	for i := range all {
		c := &all[i]
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(beat), metav1.NewTime(now)
		for _, old := range r.conditions {
			switch {
			case old.Type != c.Type:
			case old.Status != c.Status:
				r.record(c, said[c.Type])
			case !old.LastTransitionTime.IsZero():
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	return all, public
}

// why is the reason and the message of a condition.
type why struct {
	reason string
	said   message.Text
}

// record records an event when pressure starts, with its message, or ends. The relist records that
// of the Ready condition.
func (r *Reporter) record(c *v1.NodeCondition, said message.Text) {
	if c.Type == v1.NodeReady {
		return
	}
	name, reason := r.Machine.Cfg.NodeName, strings.Replace(c.Reason, "Kubelet", "Node", 1)
	kind, text := v1.EventTypeNormal, message.Of("Node %s status is now: %s", message.Name(name), message.Name(reason))
	if c.Status == v1.ConditionTrue {
		kind, text = v1.EventTypeWarning, message.Of("%s: %s", text, said)
	}
	r.Events.Record(events.NodeRef(name), kind, reason, text)
}
