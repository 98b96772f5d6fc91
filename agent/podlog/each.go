package podlog

import (
	"regexp"
	"strconv"

	"monopod/agent/disk"
)

// LogDepth is how many folders above a log others may write to: the pod's and
// the container's.
const LogDepth = 2

// logAttempt matches a container's log files, rotated ones included.
var logAttempt = regexp.MustCompile(`^(\d+)\.log(\..*)?$`)

// EachLog calls do for each file of a container's logs, with its attempt. A folder that is
// missing, or is a link, has none.
func EachLog(dir string, do func(attempt uint32, s disk.Stat)) {
	d, err := disk.OpenDir(dir, LogDepth)
	if err != nil {
		return
	}
	defer d.Close()
	d.Each(func(name string) error {
		m := logAttempt.FindStringSubmatch(name)
		if m == nil {
			return nil
		}
		s, err := d.Stat(name)
		if n, bad := strconv.ParseUint(m[1], 10, 31); bad == nil && err == nil {
			do(uint32(n), s)
		}
		return nil
	})
}
