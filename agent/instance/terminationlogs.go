package instance

import (
	"sync"
	"time"

	"monopod/agent/pleg"
	"monopod/agent/saidonce"
	"monopod/agent/volume"
)

// resweepAfter is the least time after a sweep of termination logs that failed until the next one:
// a container may start many times a minute.
const resweepAfter = time.Minute

// sweeps are the sweeps of termination logs that failed. Any goroutine may use them.
type sweeps struct {
	mu     sync.Mutex
	failed map[string]time.Time // when, by uid and container
}

// isDue reports whether a container's logs may be swept now.
func (s *sweeps) isDue(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, failed := s.failed[what]
	return !failed || time.Since(at) >= resweepAfter
}

// note records the result of a sweep.
func (s *sweeps) note(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		delete(s.failed, what)
	case s.failed == nil:
		s.failed = map[string]time.Time{what: time.Now()}
	default:
		s.failed[what] = time.Now()
	}
}

// complain logs that a file of a container, which the container can do without, cannot be made or
// removed: once until it can, or the cause changes. Texts name another file each time, so a cause
// is the kernel's.
func (f *Files) complain(text, container string, err error) {
	if f.lacks.IsNew(text+" "+container, saidonce.Cause(err)) {
		f.Log.Warn(text, "container", container, "err", err)
	}
}

const unremoved = "termination log removal failed"

// NewTerminationLog makes the termination log of a container's next attempt, and returns
// its path, "" if the container has to do without.
func (f *Files) NewTerminationLog(i *pleg.Instance, uid, name string) string {
	f.sweepTerminationLogs(i, uid, name)
	path, err := volume.TerminationLog(f.Disk.Root.Dir, uid, name)
	f.complain("container has no termination log", name, err)
	return path
}

// removeTerminationLog removes the termination log of a removed container. If
// that fails, the log is removed when the container starts again, or with the pod.
func (f *Files) removeTerminationLog(c *pleg.Container, uid string) {
	if c.TerminationLog == "" {
		return
	}
	if err := volume.RemoveTerminationLog(f.Disk.Root.Dir, uid, c.Name, c.TerminationLog); err != nil {
		f.complain(unremoved, c.Name, err) // one success means nothing for the others
	}
}

// sweepTerminationLogs removes the termination logs of a container's attempts that no longer exist
// or were never created. It removes none if the log of an attempt that may still run is not known.
func (f *Files) sweepTerminationLogs(i *pleg.Instance, uid, name string) {
	var keep []string
	if i != nil {
		for k := range i.Containers {
			c := &i.Containers[k]
			if c.Name != name {
				continue
			}
			if c.TerminationLog == "" && c.Live() {
				return
			}
			keep = append(keep, c.TerminationLog)
		}
	}
	what := uid + "/" + name
	if !f.sweeps.isDue(what) {
		return
	}
	err := volume.SweepTerminationLogs(f.Disk.Root.Dir, uid, name, keep)
	f.sweeps.note(what, err)
	f.complain(unremoved, name, err)
}

// SweepAllTerminationLogs sweeps those of all containers of an instance. i is nil if the runtime
// has nothing of it.
func (f *Files) SweepAllTerminationLogs(i *pleg.Instance, uid string) {
	for _, name := range volume.HaveTerminationLogs(f.Disk.Root.Dir, uid) {
		f.sweepTerminationLogs(i, uid, name)
	}
}
