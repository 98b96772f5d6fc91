package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// medium is a file system in memory that is mounted as a volume.
type medium struct {
	kind    string   // tmpfs, hugetlbfs
	source  string   // its source in the table of mounts
	options []string // the best first, then what an older kernel accepts
}

// medium returns the file system of an emptyDir in memory.
func (s *setup) medium(e v1.EmptyDirVolumeSource) (medium, error) {
	wanted, huge := strings.CutPrefix(string(e.Medium), string(v1.StorageMediumHugePages))
	switch {
	case e.Medium == v1.StorageMediumMemory:
		options := "mode=1777"
		if limit := s.limit(e); limit > 0 {
			options += fmt.Sprintf(",size=%d", limit)
		}
		return medium{"tmpfs", "tmpfs", []string{options + ",noswap", options}}, nil // Linux before 6.4, or a user namespace
	case huge && (wanted == "" || wanted[0] == '-'):
		size, err := s.pageSize(strings.TrimPrefix(wanted, "-"))
		return medium{"hugetlbfs", "nodev", []string{fmt.Sprintf("pagesize=%d", size)}}, err
	}
	return medium{}, fmt.Errorf("unknown storage medium %q", e.Medium)
}

// limit returns the size limit of a volume in memory, in bytes; 0: the kernel's default.
func (s *setup) limit(e v1.EmptyDirVolumeSource) int64 {
	limit := s.in.Memory
	if own := e.SizeLimit; own != nil && own.Sign() > 0 && (limit <= 0 || own.Value() < limit) {
		limit = own.Value()
	}
	return limit
}

// pageSize returns the size, in bytes, of a volume's huge pages: the wanted one, or with "" the
// only one that the pod requests. A pod that does not request such pages is refused, as it would
// get none.
func (s *setup) pageSize(wanted string) (int64, error) {
	asked := pageSizes(s.pod)
	if wanted != "" {
		q, err := resource.ParseQuantity(wanted)
		if err != nil {
			return 0, fmt.Errorf("huge pages of the size %q: %w", wanted, err)
		}
		if !asked[q.Value()] {
			return 0, fmt.Errorf("no container of the pod asks for hugepages-%s", wanted)
		}
		return q.Value(), nil
	}
	switch sizes := slices.Sorted(maps.Keys(asked)); len(sizes) {
	case 0:
		return 0, errors.New("no container of the pod asks for huge pages")
	case 1:
		return sizes[0], nil
	default:
		return 0, fmt.Errorf("the pod asks for huge pages of %d sizes: say which with medium: HugePages-<size>", len(sizes))
	}
}

// pageSizes returns the sizes, in bytes, of the huge pages that the pod requests.
func pageSizes(p *v1.Pod) map[int64]bool {
	var all []v1.ResourceList
	if r := p.Spec.Resources; r != nil {
		all = append(all, r.Requests)
	}
	for _, containers := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			all = append(all, containers[i].Resources.Requests)
		}
	}
	out := map[int64]bool{}
	for _, list := range all {
		for name := range list {
			text, huge := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
			if q, err := resource.ParseQuantity(text); huge && err == nil {
				out[q.Value()] = true
			}
		}
	}
	return out
}

// emptyDir creates the directory, on disk or in memory.
func (s *setup) emptyDir(ctx context.Context, v *v1.Volume) (Mount, error) {
	var medium v1.EmptyDirVolumeSource
	if v.EmptyDir != nil {
		medium = *v.EmptyDir
	}
	p, err := s.place(emptyDirPlugin, v.Name, v.Name, medium)
	if err != nil {
		return Mount{}, err
	}
	defer p.Close()
	if p.fresh {
		if err := s.own(ctx, p, readWrite); err != nil {
			return Mount{}, err
		}
	}
	return Mount{HostPath: p.path, Managed: true}, p.ready()
}
