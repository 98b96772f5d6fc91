package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"sync"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/disk"
)

// IdsPerPod is the length of the range of user and of group ids of a pod with
// its own users (kubelet: userNamespaces.idsPerPod).
const IdsPerPod = 1 << 16

// IdRange is a range of the machine's user and group ids.
type IdRange struct{ First, Length uint64 }

// allIDs returns the ids that the kubelet assigns to pods: all except the machine's own users.
func allIDs() IdRange { return IdRange{IdsPerPod, 1<<32 - IdsPerPod} }

// podUsers allocates ranges of ids to pods and saves each in pods/<uid>/userns,
// which is removed with the pod's dir. Any goroutine may use it.
type podUsers struct {
	root *Root
	Pool func() (IdRange, error) // called until it succeeds, when a pod needs ids

	mu    sync.Mutex
	ids   *IdRange
	taken map[string]uint32 // first id by uid of the pod; previous agents' ranges, too
}

// idMapping is a range in the file userns, which has the kubelet's format.
type idMapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

type usernsFile struct {
	UIDMappings []idMapping `json:"uidMappings"`
	GIDMappings []idMapping `json:"gidMappings"`
}

func newPodUsers(r *Root) *podUsers { return &podUsers{root: r, Pool: subIDs} }

// Take returns the ids of a pod: its own, or a free range if it has none. The pod's dir must exist.
func (u *podUsers) Take(uid string) (*rt.UserNamespace, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.recall(); err != nil {
		return nil, err
	}
	if first, ok := u.taken[uid]; ok {
		return userNamespace(first), nil
	}
	first, err := u.free()
	if err != nil {
		return nil, err
	}
	all := []idMapping{{HostID: first, Length: IdsPerPod}}
	b, err := json.Marshal(usernsFile{all, all})
	if err != nil {
		return nil, fmt.Errorf("user ids of the pod: %w", err)
	}
	if err := writeTwins(u.path(uid), b, 0o644); err != nil {
		return nil, fmt.Errorf("user ids of the pod: %w", err)
	}
	u.taken[uid] = first
	return userNamespace(first), nil
}

// Release frees the ids of a pod whose dir is gone.
func (u *podUsers) Release(uid string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.taken, uid)
}

func (u *podUsers) path(uid string) string { return u.root.Path("pods", uid, "userns") }

// recall reads the allocations on disk. If one cannot be read, the free ids are not known, so none
// can be allocated.
func (u *podUsers) recall() error {
	if u.taken != nil {
		return nil
	}
	dirs, err := os.ReadDir(u.root.Path("pods"))
	if err != nil {
		return fmt.Errorf("user ids of pods: %w", err)
	}
	taken := map[string]uint32{}
	for _, d := range dirs {
		var f usernsFile
		err := u.root.readTwins(u.path(d.Name()), 0o644, "user ids of a pod are damaged", func(b []byte) error {
			if err := disk.JSON(&f)(b); err != nil {
				return err
			}
			if len(f.UIDMappings) != 1 || len(f.GIDMappings) != 1 || f.UIDMappings[0] != f.GIDMappings[0] || f.UIDMappings[0].Length != IdsPerPod {
				return fmt.Errorf("not one range of %d ids", IdsPerPod)
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("user ids of pods: %w", err)
		}
		taken[d.Name()] = f.UIDMappings[0].HostID
	}
	u.taken = taken
	return nil
}

// free returns the first id of a range that no pod has. The search starts at a
// range that depends on the root dir, so that two agents on one machine, which
// do not know of each other, rarely choose the same.
func (u *podUsers) free() (uint32, error) {
	if u.ids == nil {
		ids, err := u.Pool()
		if err != nil {
			return 0, fmt.Errorf("user ids for pods: %w", err)
		}
		u.ids = &ids
	}
	used := map[uint32]bool{}
	for _, first := range u.taken {
		used[first] = true
	}
	blocks := u.ids.Length / IdsPerPod
	h := fnv.New64a()
	h.Write([]byte(u.root.Instance))
	for k := range blocks {
		first := uint32(u.ids.First + (h.Sum64()%blocks+k)%blocks*IdsPerPod)
		if !used[first] {
			return first, nil
		}
	}
	return 0, fmt.Errorf("all %d ranges of user ids are taken by other pods", blocks)
}

// userNamespace returns a pod's user namespace for the runtime: its root has the id first on the
// machine.
func userNamespace(first uint32) *rt.UserNamespace {
	ids := []*rt.IDMapping{{HostId: first, Length: IdsPerPod}}
	return &rt.UserNamespace{Mode: rt.NamespaceMode_POD, Uids: ids, Gids: ids}
}
