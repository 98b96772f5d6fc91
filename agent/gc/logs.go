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

// collectLogs removes the logs of our containers that were removed by somebody
// else, as a sandbox takes its containers with it: as many former ones as dead
// containers are kept stay, the newest, by which the next one is numbered.
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
					g.Log.Warn("log of a former container cannot be removed", "err", err)
				}
			}
		}
	}
}

// containersIn returns the names in a pod's folder of logs; none of a link.
func containersIn(dir string) (names []string) {
	d, err := safefile.OpenDir(dir, 1)
	if err != nil {
		return nil
	}
	defer d.Close()
	d.Each(func(name string) error { names = append(names, name); return nil })
	return names
}

// attemptsIn returns the attempts of a container that its folder has logs of,
// newest first.
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
