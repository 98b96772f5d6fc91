package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/message"
	"monopod/agent/status"
)

// pods writes all desired pods, with their status.
func (s *Server) pods(local bool, w http.ResponseWriter, _ *http.Request) {
	all := s.config.Store.Reports()
	s.list(w, len(all), func(k int) *v1.Pod { return s.shown(all[k], local) })
}

// running writes the pods that run in the runtime: names and images.
func (s *Server) running(_ bool, w http.ResponseWriter, r *http.Request) {
	all, err := s.config.Running(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.list(w, len(all), func(k int) *v1.Pod { return &all[k] })
}

// list writes a v1 PodList one pod at a time, so that no buffer has to hold
// them all.
func (s *Server) list(w http.ResponseWriter, n int, pod func(k int) *v1.Pod) {
	w.Header().Set("Content-Type", "application/json")
	write := func(data string) {
		if _, err := w.Write([]byte(data)); err != nil {
			panic(http.ErrAbortHandler) // the client is gone
		}
	}
	write(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":`)
	sep := "["
	for k := range n {
		p := pod(k)
		data, err := json.Marshal(p)
		if err != nil {
			s.config.Log.Error("encode pod", "pod", p.Namespace+"/"+p.Name, "err", err)
			panic(http.ErrAbortHandler) // half a list must not look whole
		}
		write(sep)
		write(string(data))
		sep = ","
	}
	if n == 0 {
		write("null}\n")
		return
	}
	write("]}\n")
}

// shown returns the pod as an item of a list: for root all of it, for others as by shownToAll. It
// shares with the report everything that it does not change.
func (s *Server) shown(r status.Report, local bool) *v1.Pod {
	c := *r.Pod
	c.APIVersion, c.Kind = "", ""
	if !local {
		shownToAll(&c, r.Public)
	}
	s.markHeld(&c.ObjectMeta, c.Namespace+"/"+c.Name, local)
	return &c
}

// node answers with the last report on the node, unless local without what identifies the machine,
// most of which only root may read on the machine, and without the runtime's messages.
func (s *Server) node(local bool, w http.ResponseWriter, _ *http.Request) {
	n, public := s.config.Store.NodeReport()
	if n == nil {
		http.Error(w, "the node was not looked at yet", http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, s.shownNode(n, public, local))
}

// shownNode is like shown, for the node.
func (s *Server) shownNode(n *v1.Node, public message.Book, local bool) *v1.Node {
	c := *n
	s.markHeld(&c.ObjectMeta, "", local)
	if !local {
		c.Annotations = maps.Clone(c.Annotations)
		delete(c.Annotations, status.AnnDevices)
		c.Status.NodeInfo.MachineID, c.Status.NodeInfo.SystemUUID = "", ""
		c.Status.Conditions = slices.Clone(c.Status.Conditions)
		for k := range c.Status.Conditions {
			c.Status.Conditions[k].Message = public.Public(c.Status.Conditions[k].Message)
		}
	}
	return &c
}

// markHeld adds to the annotations of a pod, or for "" of the node, that it is held now. A hold
// ends by itself, without another report.
func (s *Server) markHeld(m *metav1.ObjectMeta, pod string, local bool) {
	held := s.config.Held(pod)
	text := held.Public()
	if local {
		text = held.String()
	}
	if text != "" {
		m.Annotations = maps.Clone(m.Annotations)
		metav1.SetMetaDataAnnotation(m, status.AnnHeld, text)
	}
}
