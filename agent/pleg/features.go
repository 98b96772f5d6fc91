package pleg

import rt "k8s.io/cri-api/pkg/apis/runtime/v1"

// Up reports whether the runtime answered the last call.
func (w *Watch) Up() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Up
}

// Runtime returns the runtime's name, "" before its first answer.
func (w *Watch) Runtime() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Name
}

// recordFeatures keeps the runtime's features.
func (w *Watch) recordFeatures(st *rt.StatusResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.features = st.GetFeatures(); w.features == nil {
		w.features = &rt.RuntimeFeatures{}
	}
}

// StrictGroups reports whether the runtime supports supplementalGroupsPolicy
// Strict, and whether that is known.
func (w *Watch) StrictGroups() (supported, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.features.GetSupplementalGroupsPolicy(), w.features != nil
}
