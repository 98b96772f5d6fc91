package archives

import (
	"context"
	"fmt"

	"monopod/cri"
)

// room returns an error if the disk of the images has no room for an archive, which takes at least
// its own size there. An import that is sure to fail would fill the disk that others use, too.
func (k *Keeper) room(ctx context.Context, size int64) error {
	if k.config.Free == nil {
		return nil
	}
	fs, err := k.config.CRI.ImageFS(ctx)
	dir := fs.GetFsId().GetMountpoint()
	switch {
	case cri.Unavailable(err):
		return err
	case err != nil || dir == "":
		return nil // the runtime does not say where its images are
	}
	free, err := k.config.Free(dir)
	if err != nil || free >= uint64(max(size, 0)) {
		return nil // or the folder is not this machine's
	}
	return fmt.Errorf("the disk of the images is full: make room on it, then it is imported: %d MB are free in %s, and the archive alone has %d MB", free>>20, dir, size>>20)
}
