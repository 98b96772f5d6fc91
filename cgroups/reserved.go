package cgroups

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Limit writes values of a cgroup that others made and whose processes are theirs, such as
// /system.slice. It creates none: an error that is fs.ErrNotExist names the folder that is missing.
// If the error is ErrValues the cgroup exists. With the driver Systemd the name is of a slice, with
// or without those above it, as systemd knows it by its last part.
func (m *Manager) Limit(ctx context.Context, name string, r Resources) error {
	names := m.Names()
	if names.Driver == None {
		return ErrNotSetUp
	}
	at := names.Existing(name)
	if at == "/" {
		return fmt.Errorf("cgroup %q is the root, which has no limits", name)
	}
	for _, f := range r.files(m.tree.unified) {
		mount := m.tree.dirs[f.controller]
		if mount == "" {
			continue
		}
		if dir := dirOf(mount, at); !exists(dir) {
			return &fs.PathError{Op: "find", Path: dir, Err: fs.ErrNotExist}
		}
	}
	return m.update(ctx, at, r)
}

// Existing returns the path of a cgroup with a name that a person gave it, as the kubelet reads
// systemReservedCgroup.
func (n Names) Existing(name string) string {
	name = path.Join("/", name)
	if n.Driver != Systemd || name == "/" {
		return name
	}
	unit := strings.TrimSuffix(path.Base(name), ".slice")
	out, above := "", ""
	for part := range strings.SplitSeq(unit, "-") { // a-b.slice is in a.slice
		above += part
		out += "/" + above + ".slice"
		above += "-"
	}
	return out
}
