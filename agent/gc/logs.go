package gc

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"monopod/agent/disk"
	"monopod/agent/logrotate"
	"monopod/agent/podlog"
	"monopod/agent/saidonce"
)

// collectLogs removes the logs of containers that the agent did not remove
// itself, for example with their sandbox. The newest logs stay, as many as dead
// containers are kept; they also number the next attempt.
func (g *Garbage) collectLogs(live map[string]bool) {
	var failed error // the last one of all: usually all have one cause
	_ = disk.Each(g.PodLogs, 0, func(pod string) error {
		if !g.ours(pod) {
			return nil
		}
		return disk.Each(filepath.Join(g.PodLogs, pod), 1, func(container string) error {
			if err := g.collectLogsIn(filepath.Join(g.PodLogs, pod, container), live); err != nil {
				failed = err
			}
			return nil
		})
	})
	if g.unremoved.IsNew(saidonce.Cause(failed)) {
		g.Log.Warn("log removal failed; trying again", "err", failed)
	}
}

// collectLogsIn does it for one container's folder, which others may fill. It returns the last
// error of a removal.
func (g *Garbage) collectLogsIn(dir string, live map[string]bool) (failed error) {
	for k, n := range attemptsIn(dir) {
		if k <= max(g.Dead(), 1) || live[logOf(dir, n)] {
			continue
		}
		if err := logrotate.Remove(logOf(dir, n)); err != nil {
			failed = err
		}
	}
	return failed
}

// maxAttempts bounds how many attempts of a container are listed at once; the next collection
// finds more.
const maxAttempts = 100

// attemptsIn returns the attempts with logs in a container's log folder, newest first. If there
// are very many, it returns some.
func attemptsIn(dir string) []uint32 {
	seen := map[uint32]bool{}
	podlog.EachLog(dir, func(n uint32, s disk.Stat) {
		if len(seen) < maxAttempts {
			seen[n] = true
		}
	})
	all := slices.Sorted(maps.Keys(seen))
	slices.Reverse(all)
	return all
}

func logOf(dir string, attempt uint32) string {
	return filepath.Join(dir, strconv.FormatUint(uint64(attempt), 10)+".log")
}
