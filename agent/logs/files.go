package logs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Former logs are called <log>.<stamp>, and with .gz once they are compressed:
// as the kubelet does, in local time.
const (
	stampForm = "20060102-150405"
	zipEnd    = ".gz"
	partEnd   = ".tmp" // of what is being compressed
)

// rotated is a former log of a container.
type rotated struct {
	stamp  string
	zipped bool
}

func (f rotated) path(log string) string {
	if f.zipped {
		return log + "." + f.stamp + zipEnd
	}
	return log + "." + f.stamp
}

func parseStamp(stamp string) (time.Time, error) {
	return time.ParseInLocation(stampForm, stamp, time.UTC)
}

// nextStamp names the log that is rotated now. It comes after all former ones,
// whatever became of the clock: names tell the order.
func nextStamp(now time.Time, former []rotated) string {
	stamp := now.Local().Format(stampForm)
	if len(former) == 0 {
		return stamp
	}
	newest := former[len(former)-1].stamp
	if at, err := parseStamp(newest); err == nil && stamp <= newest {
		return at.Add(time.Second).Format(stampForm)
	}
	return stamp
}

// tidy removes what is left of a compression that was broken off, and returns
// the former logs, oldest first. Other files are somebody else's.
func tidy(log string) ([]rotated, error) {
	entries, err := os.ReadDir(filepath.Dir(log))
	if err != nil {
		return nil, fmt.Errorf("former logs: %w", err)
	}
	byStamp := map[string]rotated{}
	var trash []string
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(log)+".")
		stamp, part := strings.CutSuffix(rest, partEnd)
		stamp, zipped := strings.CutSuffix(stamp, zipEnd)
		if _, err := parseStamp(stamp); !ours || err != nil || !e.Type().IsRegular() {
			continue
		}
		f := rotated{stamp, zipped}
		if part {
			trash = append(trash, filepath.Join(filepath.Dir(log), e.Name()))
			continue
		}
		if _, both := byStamp[stamp]; both { // this one comes second and is compressed, all of it
			trash = append(trash, rotated{stamp: stamp}.path(log))
		}
		byStamp[stamp] = f
	}
	for _, t := range trash {
		if err := os.Remove(t); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("former log: %w", err)
		}
	}
	var former []rotated
	for _, f := range byStamp {
		former = append(former, f)
	}
	slices.SortFunc(former, func(a, b rotated) int { return cmp.Compare(a.stamp, b.stamp) })
	return former, nil
}

// Remove removes a log and all that came of it by rotation. Nobody may be
// rotating it, see Rotator.Remove.
func Remove(log string) error {
	entries, err := os.ReadDir(filepath.Dir(log))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove log: %w", err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(log) && !strings.HasPrefix(e.Name(), filepath.Base(log)+".") {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(log), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove log: %w", err)
		}
	}
	return nil
}

func sizeOf(path string) (int64, error) {
	i, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	return i.Size(), nil
}
