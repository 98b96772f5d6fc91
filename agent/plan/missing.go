package plan

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

const (
	LostCode    = 137
	LostMessage = "The container could not be located when the pod was looked at"
	InitMessage = "Nobody knows how the init container ended; as the pod was initialized after it, it must have succeeded"
)

// FindMissing finds the containers whose last attempt somebody removed from the
// runtime, and returns which attempt comes next. Where an older one is still
// there, it says nothing any more of the container: that is marked as lost.
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
			if next[c.Name] = uint32(c.RestartCount); c.ContainerID != "" {
				next[c.Name]++
			}
		}
	}
	return next
}
