package checkpoint

import (
	"os"
	"path/filepath"
	"strings"

	"monopod/agent/disk"
)

// usedRuntime is the file in the root dir that holds the id of a boot and the endpoint of the runtime
// that an agent last used in it.
const usedRuntime = "runtime"

// UsedRuntime returns the endpoint of the runtime that an agent of the root dir last used in this boot;
// "": not known. What it runs may run there still, also while that runtime is down. The file of another
// boot says nothing, nor does a damaged one.
func UsedRuntime(dir string, now Boot) string {
	text, _ := os.ReadFile(filepath.Join(dir, usedRuntime))
	boot, endpoint, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if now.ID == "" || boot != now.ID {
		return ""
	}
	return endpoint
}

// KeepRuntime makes later agents of this boot find the runtime again. It is not synced: after a power
// cut the boot is another one.
func (r *Root) KeepRuntime(endpoint string, now Boot) error {
	if UsedRuntime(r.Dir, now) == endpoint {
		return nil
	}
	return disk.ReplaceFile(r.Path(usedRuntime), []byte(now.ID+" "+endpoint+"\n"), 0o600)
}
