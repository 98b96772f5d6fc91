package agent

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/node"
	"monopod/agent/notify"
	"monopod/agent/podhosts"
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

// newNotifier returns what tells the service manager of the agent. Its signs of life
// are those of the sync loop: one that is stuck is ended and started again.
func (a *Agent) newNotifier() *notify.Notifier {
	send, every := notify.Sender(a.log)
	return &notify.Notifier{Send: send, Every: every, Started: a.lookedAtAll, Changes: a.store.Changes,
		Alive:  func() bool { return time.Since(a.sync.lastTurn()) <= max(2*syncTick, every) },
		Status: func() string { return notify.Line(a.store.Pods(), a.store.Runtime(), a.store.Manifests()) }}
}

// lookedAtAll returns nil once the manifests were read, the runtime's pods were listed,
// and each desired pod has a status: its first pass is over, or it waits.
func (a *Agent) lookedAtAll() error {
	if err := errors.Join(a.sync.read(), a.watch.Ready()); err != nil {
		return err
	}
	left, names := 0, a.sync.desiredNames()
	for name := range names {
		if _, looked := a.store.Pod(name); !looked {
			left++
		}
	}
	if left > 0 {
		return fmt.Errorf("%d of %d pods have not been looked at yet", left, len(names))
	}
	return nil
}
