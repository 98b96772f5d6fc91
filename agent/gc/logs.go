package gc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"monopod/agent/logs"
	"monopod/agent/podlog"
	"monopod/agent/safefile"
)

// collectLogs removes the logs of containers that the agent did not remove
// itself, for example with their sandbox. The newest logs stay, as many as dead
// containers are kept; they also number the next attempt.
func (g *Garbage) collectLogs(live map[string]bool) {
	pods, _ := os.ReadDir(g.PodLogs)
	for _, p := range pods {
		if !g.ours(p.Name()) {
			continue
		}
		keep := max(g.Dead(), 1)
		for _, c := range containersIn(filepath.Join(g.PodLogs, p.Name())) {
			dir := filepath.Join(g.PodLogs, p.Name(), c)
			for k, n := range attemptsIn(dir) {
				if k <= keep || live[logOf(dir, n)] {
					continue
				}
				if err := logs.Remove(logOf(dir, n)); err != nil {
					g.Log.Warn("log removal failed", "err", err)
				}
			}
		}
	}
}

// containersIn returns the names in a pod's log folder; none if that is a link.
func containersIn(dir string) (names []string) {
	d, err := safefile.OpenDir(dir, 1)
	if err != nil {
		return nil
	}
	defer d.Close()
	d.Each(func(name string) error { names = append(names, name); return nil })
	return names
}

// attemptsIn returns the attempts with logs in a container's log folder, newest
// first.
func attemptsIn(dir string) []uint32 {
	seen := map[uint32]bool{}
	podlog.EachLog(dir, func(n uint32, s safefile.Stat) { seen[n] = true })
	all := slices.Sorted(maps.Keys(seen))
	slices.Reverse(all)
	return all
}

func logOf(dir string, attempt uint32) string {
	return filepath.Join(dir, strconv.FormatUint(uint64(attempt), 10)+".log")
}
