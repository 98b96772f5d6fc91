package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"monopod/cri/critest"
)

// cost is what one pod of a fleet costs until all run.
type cost struct{ allocations, calls float64 }

// costOfAFleet lets n pods start, of which some wait, on a runtime that takes 50 ms for
// a sandbox and 50 us for each pod that it lists: one
// whose answers took no time would be asked for them as often as anything happens.
func costOfAFleet(t *testing.T, n, waiting int) (each cost) {
	synctest.Test(t, func(t *testing.T) {
		c := newFleet(t, n, waiting)
		c.Takes("RunPodSandbox", 50*time.Millisecond)
		for _, list := range []string{"ListPodSandbox", "ListContainers"} {
			c.Fault(critest.On(list).Delay(time.Duration(n) * 50 * time.Microsecond))
		}
		before, called := mallocs(), c.calls()
		c.offers <- c.Snapshot
		<-c.all
		c.settle()
		each = cost{float64(mallocs()-before) / float64(n), float64(c.calls()-called) / float64(n)}
		if running := len(c.Running()); running != n-waiting {
			t.Errorf("%d run", running)
		}
		c.stop()
	})
	return each
}

// What a pod costs to start is the same among 1,000 pods as among 100.
func TestAPodsCostDoesNotGrowWithTheirNumber(t *testing.T) {
	for name, part := range map[string]int{"none waits": 0, "a tenth waits": 10} {
		t.Run(name, func(t *testing.T) {
			waiting := func(n int) int {
				if part == 0 {
					return 0
				}
				return n / part
			}
			few, many := costOfAFleet(t, 100, waiting(100)), costOfAFleet(t, 1000, waiting(1000))
			t.Logf("each of 100: %.1f, each of 1,000: %.1f", few, many)
			if many.allocations > 1.3*few.allocations || many.calls > 1.3*few.calls || few.calls < 4 || few.allocations < 100 {
				t.Errorf("each of 100 pods costs %.1f, each of 1,000 %.1f (allocations, calls)", few, many)
			}
		})
	}
}
