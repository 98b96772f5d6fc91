package server

import "net/http"

// node answers with the last report on the node.
func (s *Server) node(_ bool, w http.ResponseWriter, _ *http.Request) {
	n := s.config.Store.Node()
	if n == nil {
		http.Error(w, "the node was not looked at yet", http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, n)
}
