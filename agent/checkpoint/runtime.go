package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"monopod/agent/disk"
)

// runtimeFile is the file in the root dir that says which runtime an agent last used.
const runtimeFile = "runtime"

// usedRuntime is the content of that file.
type usedRuntime struct {
	Boot     string `json:"boot"` // in which it was used
	Endpoint string `json:"endpoint"`
}

// UsedRuntime returns the endpoint of the runtime that an agent of the root dir last used in this boot;
// "": not known. What it runs may run there still, also while that runtime is down. The file of another
// boot says nothing, nor does a damaged one.
func UsedRuntime(dir string, now Boot) string {
	var last usedRuntime
	err := disk.Read(filepath.Join(dir, runtimeFile), last.parse)
	if err != nil {
		return ""
	}
	return last.in(now)
}

func (u *usedRuntime) parse(text []byte) error {
	err := disk.JSON(u)(text)
	if err == nil && (u.Boot == "" || u.Endpoint == "") {
		err = errors.New("it names no boot, or no endpoint")
	}
	return err
}

// in returns the endpoint if it was used in this boot.
func (u usedRuntime) in(now Boot) string {
	if now.ID == "" || u.Boot != now.ID {
		return ""
	}
	return u.Endpoint
}

// CheckRuntime tells of a damaged record of the runtime, and puts it aside.
func (r *Root) CheckRuntime() {
	var last usedRuntime
	err := disk.ReadOrAside(r.Path(runtimeFile), last.parse)
	if err != nil {
		r.lost(r.log, "which runtime was used last is not known", err)
	}
}

// KeepRuntime makes later agents of this boot find the runtime again.
func (r *Root) KeepRuntime(endpoint string, now Boot) error {
	if now.ID == "" || UsedRuntime(r.Dir, now) == endpoint {
		return nil
	}
	b, err := json.Marshal(usedRuntime{now.ID, endpoint})
	if err == nil {
		err = disk.WriteFile(r.Path(runtimeFile), append(disk.Seal(b), '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record of the runtime: %w", err)
	}
	return nil
}
