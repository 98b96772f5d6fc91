package volume

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// Permissions of a volume's group on its files.
const (
	readWrite uint32 = 0o660
	readOnly  uint32 = 0o440
)

// own gives the volume to the pod's fsGroup, if it has one.
func (s *setup) own(ctx context.Context, p *place, may uint32) error {
	if c := s.pod.Spec.SecurityContext; c != nil && c.FSGroup != nil {
		return setGroup(ctx, p.dir, int(*c.FSGroup), may)
	}
	return nil
}

// setGroup gives a directory and everything below it to a group, except what is mounted in it.
// Files get the mode bits of may in addition to their own; directories also become searchable and
// setgid, so that new files belong to the group. Of links only the group is changed. A directory is
// changed after its content, so that the top shows whether the whole tree is done.
func setGroup(ctx context.Context, top *disk.Dir, gid int, may uint32) error {
	mode := func(s disk.Stat) uint32 {
		if s.IsDir() {
			return s.Mode&0o7777 | may | 0o110 | unix.S_ISGID
		}
		return s.Mode&0o7777 | may
	}
	err := disk.Walk(ctx, top, func(f disk.Found) error {
		switch f.Step {
		case disk.Leaf:
			err := f.In.GiveTo(f.Name, gid, mode)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, disk.ErrMounted) {
				return nil
			}
			return err
		case disk.Leave:
			return f.Folder.GiveSelfTo(gid, mode)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return top.GiveSelfTo(gid, mode)
}
