package agent

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/node"
	"monopod/agent/podhosts"
	"monopod/agent/update"
)

// newHosts returns what names pods in the hosts files of each other.
func (a *Agent) newHosts(m *node.Node, former []*checkpoint.Checkpoint) *podhosts.Keeper {
	return podhosts.New(podhosts.Config{Store: a.store, Root: a.cfg.Root, Host: m.Now, Suffix: nameSuffix(a.cfg),
		On: func() bool { return a.live.Load().PodHosts }, Former: former, Fault: a.metrics.Panic, Log: a.log})
}

// newNodeReporter returns the reporter of the Node, which beats while the sync loop turns.
func (a *Agent) newNodeReporter(m *node.Node) *node.Reporter {
	r := &node.Reporter{Machine: m, Store: a.store, Cri: a.cri, Runtime: a.watch, Events: a.events, Turned: a.sync.lastTurn, Late: 2*syncTick + node.NodeEvery/2, Log: a.log,
		Info: node.ReadNodeInfo("/", m.Boot.ID, a.version), Measure: node.ReadSignals, Other: make(chan struct{}, 1),
		Full: func() bool { return a.images.Shortfall().Bytes > 0 }, Pressed: map[v1.NodeConditionType]time.Time{}}
	r.Port = a.server.Port()
	return r
}

// stopsFirst reports whether the version before p stops before anything of p is fetched.
func (a *Agent) stopsFirst(p *v1.Pod) bool { return update.StopsFirst(p, a.live.Load().UpdateStrategy) }

// limits returns what is asked of p when it takes the place of a former version.
func (a *Agent) limits(p *v1.Pod) update.Limits {
	c := a.live.Load()
	return update.LimitsOf(p, c.UpdateHealth, c.UpdateStable)
}
