package checkpoint

import (
	"runtime"
	"testing"

	"monopod/manifests"
)

// The lock of a name is there while a goroutine has it or waits for it, and no longer.
func TestALockOfANameIsThereWhileItIsUsed(t *testing.T) {
	var l nameLocks
	key := manifests.Key{Namespace: "default", Name: "web"}
	users := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.held[key] == nil {
			return 0
		}
		return l.held[key].users
	}
	first := l.lock(key)
	if users() != 1 {
		t.Fatalf("%d use it", users())
	}
	second := make(chan func())
	go func() { second <- l.lock(key) }()
	for users() == 1 {
		runtime.Gosched()
	}
	first()
	unlock := <-second
	if users() != 1 {
		t.Errorf("%d use it once the first has given it back", users())
	}
	l.lock(manifests.Key{Name: "another"})()
	unlock()
	if len(l.held) != 0 {
		t.Errorf("%d locks are left", len(l.held))
	}
}
