package server

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"monopod/agent/saidonce"
)

// young is how new a file may be for another of its versions to have the same time: file systems
// count time in ticks.
const young = 50 * time.Millisecond

// reloaded is a value read from files, which are read again on use when they have changed. If they
// cannot be read or parsed, the previous value stays. Any goroutine may use it.
type reloaded[T any] struct {
	what  string // for the log
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu     sync.Mutex
	seen   []version
	young  bool // another version may look the same
	value  T
	logged saidonce.Error
}

// version shows whether a file has changed.
type version struct {
	info os.FileInfo // nil: the file cannot be examined
}

func (v version) equal(o version) bool {
	if v.info == nil || o.info == nil {
		return v.info == o.info
	}
	return os.SameFile(v.info, o.info) && v.info.Mode() == o.info.Mode() &&
		v.info.Size() == o.info.Size() && v.info.ModTime().Equal(o.info.ModTime())
}

// newReloaded reads the files for the first time.
func newReloaded[T any](what string, log *slog.Logger, read func() (T, error), paths ...string) (*reloaded[T], error) {
	k := &reloaded[T]{what: what, paths: paths, read: read, log: log}
	k.seen, k.young = k.look()
	var err error
	k.value, err = read()
	return k, err
}

// look returns the versions of the files, and whether one is young.
func (k *reloaded[T]) look() (all []version, fresh bool) {
	for _, path := range k.paths {
		info, err := os.Stat(path)
		if err != nil {
			info = nil
		} else if time.Since(info.ModTime()).Abs() < young {
			fresh = true
		}
		all = append(all, version{info})
	}
	return all, fresh
}

// now returns the value of the files, or of their last valid version.
func (k *reloaded[T]) now() T {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen, fresh := k.look()
	same := slices.EqualFunc(seen, k.seen, version.equal)
	if same && !k.young && k.logged == "" { // after an error they may be readable without a change
		return k.value
	}
	k.seen, k.young = seen, fresh
	value, err := k.read()
	if err != nil {
		if k.logged.IsNew(err) {
			k.log.Error("cannot read again; the previous files stay in use", "what", k.what, "err", err)
		}
		return k.value
	}
	if !same || k.logged != "" {
		k.log.Info("read again", "what", k.what, "files", k.paths)
	}
	k.value, k.logged = value, ""
	return k.value
}
