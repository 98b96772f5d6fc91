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
type Signal struct{ Available, Capacity int64 }

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
		out["memory.available"] = Signal{int64(total - min(used, total)), int64(total)}
	}
	now, most, err := stats.Host{}.Tasks()
	if err == nil {
		out["pid.available"] = Signal{int64(most) - int64(now), int64(most)}
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
		out[name+".available"] = Signal{int64(free.Available), int64(free.Capacity)}
		if free.Inodes > 0 {
			out[name+".inodesFree"] = Signal{int64(free.InodesFree), int64(free.Inodes)}
		}
	}
	return out, failed
}

// short reports whether less is available than the threshold.
func (s Signal) short(t Threshold) bool {
	least := t.of(*resource.NewQuantity(s.Capacity, resource.BinarySI))
	return s.Available < least.Value()
}

// conditionsOf returns the node's conditions with the heartbeat beat, and what anybody may
// read of their messages.
func (r *Reporter) conditionsOf(seen Signals, now, beat time.Time) ([]v1.NodeCondition, message.Book) {
	for name, t := range r.Machine.Cfg.Pressure {
		if s, ok := seen[name]; ok && s.short(t) {
			r.Pressed[PressureOf[name]] = now
		}
	}
	if r.Full() {
		r.Pressed[v1.NodeDiskPressure] = now
	}
	public := message.Book{}
	pressed := func(kind v1.NodeConditionType, yes, no why) v1.NodeCondition {
		at, ever := r.Pressed[kind]
		if ever && now.Sub(at) < PressureFor {
			return v1.NodeCondition{Type: kind, Status: v1.ConditionTrue, Reason: yes.reason, Message: public.Note(yes.said)}
		}
		return v1.NodeCondition{Type: kind, Status: v1.ConditionFalse, Reason: no.reason, Message: public.Note(no.said)}
	}
	all := []v1.NodeCondition{
		pressed(v1.NodeMemoryPressure, why{"KubeletHasInsufficientMemory", message.Fixed("kubelet has insufficient memory available")},
			why{"KubeletHasSufficientMemory", message.Fixed("kubelet has sufficient memory available")}),
		pressed(v1.NodeDiskPressure, why{"KubeletHasDiskPressure", message.Fixed("kubelet has disk pressure")},
			why{"KubeletHasNoDiskPressure", message.Fixed("kubelet has no disk pressure")}),
		pressed(v1.NodePIDPressure, why{"KubeletHasInsufficientPID", message.Fixed("kubelet has insufficient PID available")},
			why{"KubeletHasSufficientPID", message.Fixed("kubelet has sufficient PID available")}),
		{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: public.Note(message.Fixed("kubelet is posting ready status"))},
	}
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
				r.record(c)
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

// record records an event when pressure starts or ends. The relist records that of
// the Ready condition.
func (r *Reporter) record(c *v1.NodeCondition) {
	if c.Type == v1.NodeReady {
		return
	}
	name, kind, reason := r.Machine.Cfg.NodeName, v1.EventTypeNormal, strings.Replace(c.Reason, "Kubelet", "Node", 1)
	if c.Status == v1.ConditionTrue {
		kind = v1.EventTypeWarning
	}
	r.Events.Record(events.NodeRef(name), kind, reason, message.Of("Node %s status is now: %s", message.Name(name), message.Name(reason)))
}
