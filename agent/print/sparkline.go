package print

import (
	"slices"

	"monopod/agent/status"
)

const (
	// sparkPoints are the points of a trend that one character stands for.
	sparkPoints = 5
	// A pod at rest has no mountains: these are at least what a high bar stands for.
	leastCPU    = 50      // thousandths of a core
	leastMemory = 1 << 10 // KiB
)

// bars are the heights of a sparkline.
var bars = []rune("▁▂▃▄▅▆▇█")

// hourOf returns what a pod used in the last hour, as two sparklines.
func hourOf(t status.Trend) []string {
	return []string{
		sparkline(t.Points, func(p status.Point) uint64 { return uint64(p.CPU) }, leastCPU),
		sparkline(t.Points, func(p status.Point) uint64 { return uint64(p.Memory) }, leastMemory),
	}
}

// sparkline returns a line of bars, the latest at its end. Its scale reaches from zero to the highest
// bar, and at least to least.
func sparkline(points []status.Point, of func(status.Point) uint64, least uint64) string {
	var means []uint64
	for end := len(points); end > 0; end -= sparkPoints {
		some := points[max(end-sparkPoints, 0):end]
		sum := uint64(0)
		for _, p := range some {
			sum += of(p)
		}
		means = append(means, sum/uint64(len(some)))
	}
	if len(means) == 0 {
		return ""
	}
	slices.Reverse(means)
	scale := max(slices.Max(means), least)
	line := make([]rune, len(means))
	for k, n := range means {
		line[k] = bars[n*uint64(len(bars)-1)/scale]
	}
	return string(line)
}
