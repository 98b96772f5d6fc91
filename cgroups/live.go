package cgroups

import (
	"path/filepath"
	"slices"
	"strings"
)

// Live reports whether each of these containers of a pod, by their ids, has a process in its cgroup
// or below. That is a cgroup in the pod's, whose name the OCI runtime makes of the id. It is false
// for containers that run in a machine of their own, or under a kernel of their own.
func (m *Manager) Live(c Class, uid string, containers []string) bool {
	path, err := m.pod(c, uid)
	if err != nil {
		return false
	}
	top := dirOf(m.tree.dirs["memory"], path)
	below := walk(top)
	return !slices.ContainsFunc(containers, func(id string) bool {
		return !slices.ContainsFunc(below, func(dir string) bool {
			return strings.Contains(strings.TrimPrefix(dir, top), id) && hasProcesses(dir)
		})
	})
}

func hasProcesses(dir string) bool {
	text, err := read(filepath.Join(dir, "cgroup.procs"))
	return err == nil && strings.TrimSpace(text) != ""
}
