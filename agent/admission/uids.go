package admission

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/message"
	"monopod/manifests"
)

// ReasonUIDInUse is the reason of a pod that waits because another pod has its uid.
const ReasonUIDInUse = "UIDInUse"

// UidHolders records which pod name has which uid. A pod's folder, checkpoint, cgroup and user
// namespace are named by its uid alone, so one pod name at a time has it: from its admission, its
// checkpoint or its first relist until nothing of it is left. Any goroutine may take a free uid;
// only the sync loop releases one. For nil, no uid is taken.
type UidHolders struct {
	mu     sync.Mutex
	holder map[types.UID]manifests.Key
	of     map[manifests.Key][]types.UID
}

func newUIDHolders(checkpoints []*checkpoint.Checkpoint) *UidHolders {
	u := &UidHolders{holder: map[types.UID]manifests.Key{}, of: map[manifests.Key][]types.UID{}}
	for _, c := range checkpoints {
		u.Take(c.Pod.UID, c.Key())
	}
	return u
}

// Take assigns the uid to the pod name. If another name has it, Take returns that name.
func (u *UidHolders) Take(uid types.UID, key manifests.Key) (other manifests.Key, free bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch other, held := u.holder[uid]; {
	case !held:
		u.holder[uid], u.of[key] = key, append(u.of[key], uid)
	case other != key:
		return other, false
	}
	return manifests.Key{}, true
}

// Other returns the pod name that has the uid, if it is not key.
func (u *UidHolders) Other(uid types.UID, key manifests.Key) (manifests.Key, bool) {
	if u == nil {
		return manifests.Key{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	other, held := u.holder[uid]
	return other, held && other != key
}

// keep releases all uids of the pod name but these, and reports whether it released any.
func (u *UidHolders) keep(key manifests.Key, uids ...types.UID) (released bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	had := len(u.of[key])
	left := slices.DeleteFunc(u.of[key], func(uid types.UID) bool {
		if slices.Contains(uids, uid) {
			return false
		}
		delete(u.holder, uid)
		return true
	})
	u.of[key] = left
	if len(left) == 0 {
		delete(u.of, key)
	}
	return len(left) < had
}

// uidInUse refuses a pod while another name has its uid.
func (s *Table) uidInUse(p *manifests.Pod) *Rejection {
	other, taken := s.Uids.Other(p.UID, p.Key())
	if !taken {
		return nil
	}
	return s.refuseUID(p, other)
}

// takeUID assigns the pod its uid, or refuses the pod.
func (s *Table) takeUID(p *manifests.Pod) *Rejection {
	if other, free := s.Uids.Take(p.UID, p.Key()); !free {
		return s.refuseUID(p, other)
	}
	return nil
}

func (s *Table) refuseUID(p *manifests.Pod, other manifests.Key) *Rejection {
	s.uidWaits = true
	if at := s.entries[other]; at != nil && at.pod != nil && at.pod.UID == p.UID {
		return &Rejection{ReasonUIDInUse, message.Of("the uid %s in %s is that of the pod %s in %s: leave metadata.uid out of one of the two, or remove one",
			message.Name(p.UID), message.Private(p.File), message.Name(other.String()), message.Private(at.pod.File))}
	}
	return &Rejection{ReasonUIDInUse, message.Name(UidStillOf(string(p.UID), other)).Text()}
}

// UidStillOf is the message of a pod that waits until another pod with its uid is gone.
func UidStillOf(uid string, other manifests.Key) string {
	return fmt.Sprintf("the uid %s is still that of the pod %s: this pod starts once nothing of that one is left", uid, other)
}
