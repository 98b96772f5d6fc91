package update

import (
	"fmt"
	"strings"
	"time"

	"monopod/agent/window"
)

// Gate is what may keep the agent from changing what runs, though all is there for the
// change.
type Gate struct {
	Now      time.Time
	Holds    []string // what holds of the pod and of the node say, while they count
	Windows  window.Windows
	Lock     string // the path of the file by which the pod's workload locks it; "": it does not
	LockEnds time.Time
}

// Update says in words what an update waits for, in order; "": nothing.
func (g Gate) Update() string {
	reasons := g.owner()
	if g.Lock != "" {
		reasons = append(reasons, fmt.Sprintf("locked by its workload: %s, at most until %s", g.Lock, g.LockEnds.Format(time.RFC3339)))
	}
	return strings.Join(reasons, "; ")
}

// Removal says in words what a removal waits for, in order; "": nothing.
func (g Gate) Removal() string { return strings.Join(g.owner(), "; ") }

func (g Gate) owner() (reasons []string) {
	reasons = append(reasons, g.Holds...)
	if !g.Windows.Open(g.Now) {
		reasons = append(reasons, "outside of the update window, which opens "+g.Windows.Next(g.Now).Format("Mon "+time.RFC3339))
	}
	return reasons
}
