package status

import (
	"errors"
	"io/fs"
	"monopod/agent/statefile"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const nodeFile = "node.json"

// SetNode reports the node. The store owns it from now on: it must not be
// changed. A report that brings nothing but another heartbeat costs no fsync, so a
// power cut may undo it.
func (s *Store) SetNode(n *v1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	beats := s.node != nil && equality.Semantic.DeepEqual(heartless(s.node), heartless(n))
	s.writer.put(nodeFile, &job{value: n, minor: beats})
	s.node = n
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
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.node
}

// PreviousNode returns the node as it was last written, by this run of the
// agent or an earlier one; nil if there is none.
func (s *Store) PreviousNode() *v1.Node {
	var n v1.Node
	err := statefile.ReadOrAside(filepath.Join(s.dir, nodeFile), statefile.JSON(&n))
	if err == nil {
		return &n
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("the previous run's report on the node cannot be read", "err", err)
	}
	return nil
}
