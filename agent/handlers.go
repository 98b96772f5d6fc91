package agent

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeHandler returns the runtime's handler that the pod's class stands for,
// "" for a pod without one. classes are the handlers by name of the class.
func runtimeHandler(p *v1.Pod, classes map[string]string) (string, error) {
	class := p.Spec.RuntimeClassName
	if class == nil || *class == "" {
		return "", nil
	}
	handler, ok := classes[*class]
	if !ok {
		return "", fmt.Errorf("runtime class %q is not configured on this node", *class)
	}
	return handler, nil
}

// noteHandlers keeps what the runtime tells that its handlers can do.
func (w *watch) noteHandlers(st *rt.StatusResponse) {
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
func (w *watch) Handler(handler string) *rt.RuntimeHandlerFeatures {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handlers[handler]
}

// recursiveReadOnly reports whether the pod's handler can mount read-only all the
// way down.
func (w *worker) recursiveReadOnly(p *v1.Pod) bool {
	handler, err := runtimeHandler(p, w.runtimeClasses)
	return err == nil && w.watch.Handler(handler).GetRecursiveReadOnlyMounts()
}
