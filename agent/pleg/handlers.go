package pleg

import rt "k8s.io/cri-api/pkg/apis/runtime/v1"

// recordHandlers keeps the features of the runtime's handlers.
func (w *Watch) recordHandlers(st *rt.StatusResponse) {
	handlers := map[string]*rt.RuntimeHandlerFeatures{}
	for _, h := range st.GetRuntimeHandlers() {
		handlers[h.Name] = h.Features
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handlers = handlers
}

// Handler returns the handler's features; "" is the default handler. It is nil
// if the runtime does not report them.
func (w *Watch) Handler(handler string) *rt.RuntimeHandlerFeatures {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handlers[handler]
}
