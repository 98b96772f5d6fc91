package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"monopod/agent/disk"
)

// removeDir removes a directory of pods, such as pods/<uid>: its directories first, then its files.
func removeDir(ctx context.Context, pods, uid string) error {
	parent, err := disk.OpenDir(pods, 0)
	if err != nil {
		return err
	}
	defer parent.Close()
	top, err := parent.OpenBelow(uid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()
	if err := top.EmptyFolders(ctx); err != nil {
		return err
	}
	return parent.RemoveAll(ctx, uid)
}

// RemoveRoot removes the root dir of an agent that will not be started again, with its content. It
// changes nothing while anything is mounted below.
func RemoveRoot(ctx context.Context, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	below, err := mountsBelow(root)
	if err != nil {
		return err
	}
	if len(below) > 0 {
		return fmt.Errorf("cannot remove %s: something is mounted at %s", root, below[0].path)
	}
	return removeDir(ctx, filepath.Dir(root), filepath.Base(root))
}
