package archives

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"monopod/agent/disk"
)

// record is what was imported, by path, for the next agent: it need not read those archives again.
type record map[string]imported

// imported is a version of an archive whose images the runtime has got.
type imported struct {
	Is    signature `json:"is"`
	Index Index     `json:"index"`
	Disk  string    `json:"disk,omitempty"` // the file system of its folder; "": not known
}

// loadRecord reads what the previous agent wrote; the error says that it cannot be used.
func loadRecord(path string) (record, error) {
	r := record{}
	if path == "" {
		return r, nil
	}
	err := disk.ReadOrAside(path, disk.JSON(&r))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if r == nil { // the file says null
		r = record{}
	}
	return r, err
}

// entries returns the archives that are recorded. Until their folders were looked at, and while these
// cannot be read, they are there.
func (r record) entries(now time.Time) map[string]*entry {
	all := map[string]*entry{}
	for path, i := range r {
		all[path] = &entry{Known: Known{Path: path, State: Imported, Index: i.Index}, sig: i.Is, disk: i.Disk, checked: now}
	}
	return all
}

func (r record) save(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return disk.WriteFile(path, data, 0o600)
}
