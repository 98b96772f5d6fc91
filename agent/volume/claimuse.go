package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// MadeAt returns when the directory of a claim was created; zero: its file system does not record
// that, or it is missing.
func MadeAt(root string, c types.NamespacedName) time.Time {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, ClaimDir(root, c), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}

// ClaimSize returns the size of a claim on its disk in bytes; a file with several names counts
// once. Pods may write to it meanwhile, and no link leads out of it.
func ClaimSize(ctx context.Context, root string, c types.NamespacedName) (bytes int64, err error) {
	dir, err := os.OpenRoot(ClaimDir(root, c))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	seen := map[[2]uint64]bool{} // device and inode of files with several names
	err = fs.WalkDir(dir.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		var n int64
		if err == nil {
			n, err = onDisk(d, seen)
		}
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		bytes += n
		return err
	})
	return bytes, err
}

func onDisk(d fs.DirEntry, seen map[[2]uint64]bool) (int64, error) {
	info, err := d.Info()
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), nil
	}
	file := [2]uint64{uint64(st.Dev), st.Ino}
	if st.Nlink > 1 && !d.IsDir() {
		if seen[file] {
			return 0, nil
		}
		seen[file] = true
	}
	return st.Blocks * 512, nil // the unit of st_blocks (stat(2))
}
