package shutdown

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"monopod/agent/disk"
)

// TimesFile is the file of the times of the last shutdown, in the root dir (kubelet: the same name
// and fields).
const TimesFile = "graceful_node_shutdown_state"

// Times are when the last shutdown that logind announced began, and when its pods had stopped;
// zero: never, or not yet.
type Times struct {
	Start time.Time `json:"startTime"`
	End   time.Time `json:"endTime"`
}

// Record keeps the times of the last shutdown across it. One goroutine uses it.
type Record struct {
	Path  string
	Shown func(start, end time.Time) // to the metrics; zero as in Times
}

// load shows the times of an earlier run. A damaged file is put aside.
func (r *Record) load() error {
	var t Times
	if err := disk.ReadOrAside(r.Path, disk.JSON(&t)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.Shown(t.Start, t.End)
	return nil
}

// save keeps the times: the machine goes down soon.
func (r *Record) save(t Times) error {
	r.Shown(t.Start, t.End)
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return disk.WriteFile(r.Path, append(disk.Seal(b), '\n'), 0o600)
}
