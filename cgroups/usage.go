package cgroups

import (
	"fmt"
	"strconv"
	"strings"
)

// MemoryInUse returns the memory of a pod's cgroup and those below it, in bytes, without the cached
// files that the kernel can drop. It includes files in memory, as in an emptyDir with that medium:
// they are charged to the container that wrote them, and to its pod once that container is gone.
// The error is fs.ErrNotExist if there is no cgroup.
func (m *Manager) MemoryInUse(c Class, uid string) (int64, error) {
	path, err := m.pod(c, uid)
	if err != nil {
		return 0, err
	}
	usage, inactive := "memory.usage_in_bytes", "total_inactive_file"
	if m.tree.unified {
		usage, inactive = "memory.current", "inactive_file"
	}
	all, err := m.tree.number(path, usage)
	if err != nil {
		return 0, err
	}
	text, err := read(m.tree.memory(path, "memory.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		value, is := strings.CutPrefix(line, inactive+" ")
		if !is {
			continue
		}
		reclaimed, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory.stat: %w", err)
		}
		return max(all-reclaimed, 0), nil
	}
	return all, nil
}

// memory returns the path of a file of a cgroup's memory controller.
func (t *tree) memory(path, name string) string { return dirOf(t.dirs["memory"], path) + "/" + name }

func (t *tree) number(path, name string) (int64, error) {
	text, err := read(t.memory(path, name))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}
