package volume

import (
	"context"
	"fmt"
	"path/filepath"
)

// RemoveRoot removes the root dir of an agent that is not to come again, with
// everything in it. It changes nothing while anything is mounted below.
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
	return removePodDir(ctx, filepath.Dir(root), filepath.Base(root))
}
