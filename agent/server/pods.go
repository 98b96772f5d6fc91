package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/elide"
	"monopod/agent/status"
)

// elided stands for what only the socket shows.
const elided = elide.Mark

// pods writes all desired pods, with their status.
func (s *Server) pods(local bool, w http.ResponseWriter, _ *http.Request) {
	all := s.config.Store.Pods()
	s.list(w, len(all), func(k int) *v1.Pod { return s.shown(all[k], local) })
}

// running writes what runs in the runtime: names and images.
func (s *Server) running(_ bool, w http.ResponseWriter, r *http.Request) {
	if s.config.Running == nil {
		http.NotFound(w, r)
		return
	}
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

// shown returns the pod as an item of a list, without what may be secret unless
// local. It shares with p all that it does not change.
func (s *Server) shown(p *v1.Pod, local bool) *v1.Pod {
	c := *p
	c.APIVersion, c.Kind = "", ""
	s.markHeld(&c.ObjectMeta, p.Namespace+"/"+p.Name)
	if !local {
		c.Status = elideStatus(p, s.config.Events.Secrets(p))
		c.Spec.InitContainers = elideContainers(c.Spec.InitContainers)
		c.Spec.Containers = elideContainers(c.Spec.Containers)
		if words, said := c.Annotations[status.AnnProblems]; said {
			c.Annotations = maps.Clone(c.Annotations)
			c.Annotations[status.AnnProblems] = s.config.Events.Secrets(p).Hide(words)
		}
		if _, copied := c.Annotations[v1.LastAppliedConfigAnnotation]; copied { // the whole manifest
			c.Annotations = maps.Clone(c.Annotations)
			c.Annotations[v1.LastAppliedConfigAnnotation] = elided
		}
	}
	return &c
}

// elideContainers returns the containers without the values of their env and of the
// headers that probes and hooks send.
func elideContainers(containers []v1.Container) []v1.Container {
	out := slices.Clone(containers)
	for i := range out {
		c := &out[i]
		c.Env = slices.Clone(c.Env)
		for j := range c.Env {
			if c.Env[j].Value != "" {
				c.Env[j].Value = elided
			}
		}
		for _, p := range []**v1.Probe{&c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe} {
			if *p != nil && (*p).HTTPGet != nil {
				one := **p
				one.HTTPGet = elideHeaders(one.HTTPGet)
				*p = &one
			}
		}
		if c.Lifecycle != nil {
			l := *c.Lifecycle
			l.PostStart, l.PreStop = elideHook(l.PostStart), elideHook(l.PreStop)
			c.Lifecycle = &l
		}
	}
	return out
}

func elideHook(h *v1.LifecycleHandler) *v1.LifecycleHandler {
	if h == nil || h.HTTPGet == nil {
		return h
	}
	c := *h
	c.HTTPGet = elideHeaders(h.HTTPGet)
	return &c
}

func elideHeaders(a *v1.HTTPGetAction) *v1.HTTPGetAction {
	c := *a
	c.HTTPHeaders = slices.Clone(a.HTTPHeaders)
	for k := range c.HTTPHeaders {
		c.HTTPHeaders[k].Value = elided
	}
	return &c
}

// node answers with the last report on the node, without what tells the machine
// from all others unless local: most of that only root may read on the machine.
func (s *Server) node(local bool, w http.ResponseWriter, _ *http.Request) {
	n := s.config.Store.Node()
	if n == nil {
		http.Error(w, "the node was not looked at yet", http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, s.shownNode(n, local))
}

// shownNode is shown for the node.
func (s *Server) shownNode(n *v1.Node, local bool) *v1.Node {
	c := *n
	s.markHeld(&c.ObjectMeta, "")
	if !local {
		c.Status.NodeInfo.MachineID, c.Status.NodeInfo.SystemUUID = "", ""
	}
	return &c
}

// markHeld says in the annotations of a pod, or for "" of the node, that it is held now.
// A hold ends by itself, without another report.
func (s *Server) markHeld(m *metav1.ObjectMeta, pod string) {
	if s.config.Held == nil {
		return
	}
	if text := s.config.Held(pod); text != "" {
		m.Annotations = maps.Clone(m.Annotations)
		metav1.SetMetaDataAnnotation(m, status.AnnHeld, text)
	}
}
