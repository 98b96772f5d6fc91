package panics

import "sync"

// Faults remembers which panics were said, by pod and what was done, so that each is
// said once and not with each retry. Any goroutine may use it.
type Faults struct {
	mu   sync.Mutex
	said map[string]string
}

func (f *Faults) IsNew(what, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said[what] == text {
		return false
	}
	if f.said == nil {
		f.said = map[string]string{}
	}
	f.said[what] = text
	return true
}
