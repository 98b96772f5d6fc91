package checkpoint

import (
	"sync"

	"monopod/manifests"
)

// nameLocks lets one goroutine at a time change what is on disk of a pod name. The zero value is
// ready to use.
type nameLocks struct {
	mu   sync.Mutex
	held map[manifests.Key]*nameLock
}

// nameLock is the lock of a name that a goroutine holds or waits for.
type nameLock struct {
	sync.Mutex
	users int
}

// lock waits for the lock of a name, and returns the func that releases it.
func (l *nameLocks) lock(key manifests.Key) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[manifests.Key]*nameLock{}
	}
	of := l.held[key]
	if of == nil {
		of = &nameLock{}
		l.held[key] = of
	}
	of.users++
	l.mu.Unlock()
	of.Lock()
	return func() {
		of.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		of.users--
		if of.users == 0 {
			delete(l.held, key)
		}
	}
}
