package status

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/disk"
	"monopod/agent/message"
)

const nodeFile = "node.json"

// beatEvery is how often a report on the node with only a new heartbeat is written: each costs
// flash storage a block or more.
const beatEvery = 10 * time.Minute

// SetNode reports the node, of whose messages only root may read any.
func (s *Store) SetNode(n *v1.Node) { s.SetNodeReport(n, nil) }

// SetNodeReport reports the node, and what clients other than root may read of its messages. The
// store owns both from now on: they must not be changed. A change is written soon, a mere
// heartbeat each beatEvery and at the end.
func (s *Store) SetNodeReport(n *v1.Node, public message.Book) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.node == nil || !equality.Semantic.DeepEqual(heartless(s.node), heartless(n)) {
		s.nodeBy = now.Add(beatEvery)
		s.writer.put(nodeFile, n)
	} else {
		if !now.Before(s.nodeBy) { // the last one is due by then
			s.nodeBy = now.Add(beatEvery)
		}
		s.writer.putBy(nodeFile, n, s.nodeBy)
	}
	s.node, s.nodePublic = n, public
}

// heartless returns the node without its heartbeats.
func heartless(n *v1.Node) *v1.Node {
	out := *n
	out.Status.Conditions = slices.Clone(n.Status.Conditions)
	for k := range out.Status.Conditions {
		out.Status.Conditions[k].LastHeartbeatTime = metav1.Time{}
	}
	return &out
}

// Node returns the last report, nil before the first. Callers must not change it.
func (s *Store) Node() *v1.Node {
	n, _ := s.NodeReport()
	return n
}

// NodeReport is Node with what clients other than root may read of its messages.
func (s *Store) NodeReport() (*v1.Node, message.Book) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.node, s.nodePublic
}

// PreviousNode returns the node as it was last written, by this run of the
// agent or an earlier one; nil if there is none.
func (s *Store) PreviousNode() *v1.Node {
	var n v1.Node
	err := disk.ReadOrAside(filepath.Join(s.dir, nodeFile), disk.JSON(&n))
	if err == nil {
		return &n
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("the previous run's report on the node cannot be read", "err", err)
	}
	return nil
}
