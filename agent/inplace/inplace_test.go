package inplace

import (
	"testing"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cgroups"
)

func TestOnlyALowerLimitTakesMemory(t *testing.T) {
	limited := func(bytes int64) *cgroups.Resources { return &cgroups.Resources{Memory: bytes} }
	for _, row := range []struct {
		name   string
		former *cgroups.Resources
		limit  int64
		takes  bool
	}{
		{"a lower limit does", limited(64), 32, true},
		{"a higher one does not", limited(64), 128, false},
		{"nor the same", limited(64), 64, false},
		{"the first limit does", limited(0), 64, true},
		{"no limit any more takes nothing", limited(64), 0, false},
		{"none ever takes nothing", limited(0), 0, false},
		{"where nothing is known of the former one, any limit does", nil, 64, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := takesMemory(row.former, row.limit); got != row.takes {
				t.Errorf("takes memory: %v", got)
			}
		})
	}
}

func TestMemoryInUseOfAContainerIsItsWorkingSetWhereTheRuntimeSaysIt(t *testing.T) {
	all, part := &rt.UInt64Value{Value: 100}, &rt.UInt64Value{Value: 60}
	for _, row := range []struct {
		name string
		says *rt.MemoryUsage
		want uint64
	}{
		{"both", &rt.MemoryUsage{UsageBytes: all, WorkingSetBytes: part}, 60},
		{"all alone", &rt.MemoryUsage{UsageBytes: all}, 100},
		{"nothing", nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := used(row.says); got != row.want {
				t.Errorf("%d", got)
			}
		})
	}
}
