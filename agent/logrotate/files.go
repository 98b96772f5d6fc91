package logrotate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"monopod/agent/disk"
)

// Rotated logs are called <log>.<stamp>, and with .gz once they are compressed: as with the
// kubelet, in local time.
const (
	stampForm = "20060102-150405"
	zipEnd    = ".gz"
	partEnd   = ".tmp" // of an unfinished compression
)

// rotated is a rotated log of a container.
type rotated struct {
	stamp  string
	zipped bool
}

// name returns the file's name, from the log's.
func (f rotated) name(log string) string {
	if f.zipped {
		return log + "." + f.stamp + zipEnd
	}
	return log + "." + f.stamp
}

func parseStamp(stamp string) (time.Time, error) {
	return time.ParseInLocation(stampForm, stamp, time.UTC)
}

// nextStamp returns the stamp of the log that is rotated now. The name sorts after all previous
// ones, even if the clock was set back: the names are the order.
func nextStamp(now time.Time, old []rotated) string {
	stamp := now.Local().Format(stampForm)
	if len(old) == 0 {
		return stamp
	}
	newest := old[len(old)-1].stamp
	if at, err := parseStamp(newest); err == nil && stamp <= newest {
		return at.Add(time.Second).Format(stampForm)
	}
	return stamp
}

// logDepth is the number of folders above a log that others may write to: the pod's and the
// container's.
const logDepth = 2

// folderOf opens the folder of a log. The caller closes it.
func folderOf(log string) (*disk.Dir, error) {
	return disk.OpenDir(filepath.Dir(log), logDepth)
}

// maxRotated bounds how many rotated logs are listed at once, in case others made very many. After
// the removal of these the rest is listed.
const maxRotated = 10_000

// tidy removes what an interrupted compression left, and returns the rotated logs, oldest first.
// It ignores other files.
func tidy(d *disk.Dir, log string) ([]rotated, error) {
	byStamp := map[string]rotated{}
	trash := map[string]bool{}
	err := d.Each(func(name string) error {
		f, part, ours := parseName(name, log)
		if !ours || len(byStamp)+len(trash) >= maxRotated || !isRegular(d, name) {
			return nil
		}
		if part {
			trash[name] = true
			return nil
		}
		if _, both := byStamp[f.stamp]; both { // the compressed file is complete
			trash[rotated{stamp: f.stamp}.name(log)] = true
			f.zipped = true
		}
		byStamp[f.stamp] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rotated logs: %w", err)
	}
	for name := range trash {
		if err := remove(d, name); err != nil {
			return nil, fmt.Errorf("rotated log: %w", err)
		}
	}
	old := slices.Collect(maps.Values(byStamp))
	slices.SortFunc(old, func(a, b rotated) int { return cmp.Compare(a.stamp, b.stamp) })
	return old, nil
}

// parseName parses the name of a file from a rotation of log.
func parseName(name, log string) (f rotated, part, ours bool) {
	rest, ours := strings.CutPrefix(name, log+".")
	rest, part = strings.CutSuffix(rest, partEnd)
	f.stamp, f.zipped = strings.CutSuffix(rest, zipEnd)
	_, err := parseStamp(f.stamp)
	return f, part, ours && err == nil
}

func isRegular(d *disk.Dir, name string) bool {
	s, err := d.Stat(name)
	return err == nil && s.IsRegular()
}

// remove removes a file, which may be gone.
func remove(d *disk.Dir, name string) error {
	if err := d.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Remove removes a log and its rotated logs. The log must not be rotated
// meanwhile, see Rotator.Remove.
func Remove(log string) error {
	d, err := folderOf(log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove log: %w", err)
	}
	defer d.Close()
	name := filepath.Base(log)
	var failed error // one error is enough
	err = d.Each(func(n string) error {
		if n == name || strings.HasPrefix(n, name+".") {
			failed = cmp.Or(remove(d, n), failed)
		}
		return nil
	})
	if err = cmp.Or(err, failed); err != nil {
		return fmt.Errorf("remove log: %w", err)
	}
	return nil
}

// sizeOf returns the size of a log.
func sizeOf(path string) (int64, error) {
	s, err := disk.Lstat(path)
	if err == nil {
		if err = s.Regular(); err != nil {
			err = fmt.Errorf("%s: %w; remove it", path, err)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	return s.Size(), nil
}

// isOther reports whether sizeOf found something that is not a log.
func isOther(err error) bool {
	return errors.Is(err, disk.ErrLink) || errors.Is(err, disk.ErrNotRegular)
}
