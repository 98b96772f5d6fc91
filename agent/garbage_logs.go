package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"monopod/agent/logs"
)

// collectLogs removes the logs of our containers that were removed by somebody
// else, as a sandbox takes its containers with it: as many former ones as dead
// containers are kept stay, the newest, by which the next one is numbered.
func (g *garbage) collectLogs(live map[string]bool) {
	pods, _ := os.ReadDir(g.podLogs)
	for _, p := range pods {
		if !g.ours(p.Name()) {
			continue
		}
		keep := max(g.dead(), 1)
		containers, _ := os.ReadDir(filepath.Join(g.podLogs, p.Name()))
		for _, c := range containers {
			dir := filepath.Join(g.podLogs, p.Name(), c.Name())
			for k, n := range attemptsIn(dir) {
				if k <= keep || live[logOf(dir, n)] {
					continue
				}
				if err := logs.Remove(logOf(dir, n)); err != nil {
					g.log.Warn("log of a former container cannot be removed", "err", err)
				}
			}
		}
	}
}

// attemptsIn returns the attempts of a container that its folder has logs of,
// newest first.
func attemptsIn(dir string) []uint32 {
	files, _ := os.ReadDir(dir)
	var all []uint32
	for _, f := range files {
		m := logAttempt.FindStringSubmatch(f.Name())
		if m == nil {
			continue
		}
		if n, err := strconv.ParseUint(m[1], 10, 31); err == nil {
			all = append(all, uint32(n))
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Reverse(all)
	return all
}

func logOf(dir string, attempt uint32) string {
	return filepath.Join(dir, strconv.FormatUint(uint64(attempt), 10)+".log")
}
