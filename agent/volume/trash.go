package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"monopod/agent/disk"
)

// trashDir is the folder below the root dir for the directories of removed pods until they are
// deleted.
const trashDir = "trash"

// discard moves a pod's directory into the trash, under a unique name.
func discard(root, dir string) error {
	trash := filepath.Join(root, trashDir)
	if err := os.Mkdir(trash, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return moveTo(trash, filepath.Base(dir)+".", dir)
}

// moveTo moves a directory into a folder, under a unique name with that prefix.
func moveTo(folder, prefix, dir string) error {
	to, err := os.MkdirTemp(folder, prefix)
	if err != nil {
		return err
	}
	if err := unix.Rename(dir, to); err != nil { // replaces the empty directory
		os.Remove(to)
		return err
	}
	return nil
}

// EmptyTrash deletes what TearDown moved into the trash. It continues after an error and returns
// all errors; what could not be deleted stays for the next call.
func EmptyTrash(ctx context.Context, root string) error {
	trash := filepath.Join(root, trashDir)
	var failed []error
	err := disk.Each(trash, 0, func(name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := removeDir(ctx, trash, name); err != nil {
			failed = append(failed, fmt.Errorf("trash: %w", err))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("trash: %w", err)
	}
	return errors.Join(failed...)
}
