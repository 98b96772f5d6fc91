package oom

import "sync"

// kept is how many kills are kept, the newest ones.
const kept = 512

// Kills are the newest kills. Any goroutine may use it; nil has none.
type Kills struct {
	mu  sync.Mutex
	all []Kill // the newest last
}

// Add adds a kill.
func (k *Kills) Add(kill Kill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == kept {
		k.all = append(k.all[:0], k.all[1:]...)
	}
	k.all = append(k.all, kill)
}

// Last returns the last kill in the container with this id; nil: none is known.
func (k *Kills) Last(id string) *Kill {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for at := len(k.all) - 1; at >= 0; at-- {
		if k.all[at].In(id) {
			kill := k.all[at]
			return &kill
		}
	}
	return nil
}
