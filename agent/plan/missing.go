package plan

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

const (
	LostCode    = 137
	LostMessage = "The container could not be located when the pod was observed"
	InitMessage = "The exit of the init container is not known; the pod was initialized after it, so it succeeded"
)

// FindMissing finds the containers whose last attempt was removed from the runtime by another
// program, and returns their next attempts. An older attempt that still exists does not represent
// the container: it is marked as missing.
func (s *Facts) FindMissing(last *v1.PodStatus) map[string]uint32 {
	next, i := map[string]uint32{}, s.Instance()
	if last == nil {
		return next
	}
	for _, list := range [][]v1.ContainerStatus{last.InitContainerStatuses, last.ContainerStatuses} {
		for k := range list {
			c := &list[k]
			n := i.Newest(c.Name)
			if n != nil && (!n.Exited() || n.Attempt >= uint32(c.RestartCount) || strings.HasSuffix(c.ContainerID, "://"+n.ID)) {
				continue
			}
			if n != nil {
				i.MarkMissing(c.Name)
			}
			next[c.Name] = uint32(c.RestartCount)
			if c.ContainerID != "" {
				next[c.Name]++
			}
		}
	}
	return next
}
