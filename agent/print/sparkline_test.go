package print

import (
	"slices"
	"testing"

	"monopod/agent/status"
)

func TestASparklineHasTheLastHour(t *testing.T) {
	of := func(n int, cpu func(k int) uint32) (all []status.Point) {
		for k := range n {
			all = append(all, status.Point{CPU: cpu(k), Memory: 2048})
		}
		return all
	}
	rises := func(k int) uint32 { return uint32(10 * k) }
	for _, row := range []struct {
		name   string
		points []status.Point
		want   []string
	}{
		{"nothing yet", nil, []string{"", ""}},
		{"one point", of(1, rises), []string{"▁", "█"}},
		{"six points", of(6, func(k int) uint32 { return uint32(100 - min(k, 1)*50) }), []string{"█▄", "██"}},
		{"an hour that rises", of(60, rises), []string{"▁▁▂▃▃▄▄▅▆▆▇█", "████████████"}},
		{"an hour at rest", of(60, func(k int) uint32 { return uint32(k % 3) }), []string{"▁▁▁▁▁▁▁▁▁▁▁▁", "████████████"}},
	} {
		if got := hourOf(status.Trend{Points: row.points}); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
