package pleg

import rt "k8s.io/cri-api/pkg/apis/runtime/v1"

// recordHandlers keeps what the runtime tells that its handlers can do.
func (w *Watch) recordHandlers(st *rt.StatusResponse) {
	handlers := map[string]*rt.RuntimeHandlerFeatures{}
	for _, h := range st.GetRuntimeHandlers() {
		handlers[h.Name] = h.Features
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handlers = handlers
}

// Handler returns what the handler can do; "" is the default one. Of a runtime
// that does not say it is nil.
func (w *Watch) Handler(handler string) *rt.RuntimeHandlerFeatures {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handlers[handler]
}
