package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/safefile"
	"monopod/manifests"
)

// logDepth is how many folders above a log others may write to: the pod's and
// the container's.
const logDepth = 2

// logAttempt matches a container's log files, rotated ones included.
var logAttempt = regexp.MustCompile(`^(\d+)\.log(\..*)?$`)

// podLogDir returns the log dir of one instance of the worker's pod.
func (w *worker) podLogDir(uid string) string {
	return podLogDir(w.podLogs, w.key, uid)
}

// podLogDir returns the log dir of one instance of a pod.
func podLogDir(podLogs string, key manifests.Key, uid string) string {
	return filepath.Join(podLogs, key.Namespace+"_"+key.Name+"_"+uid)
}

func (w *worker) makeLogDir(pod *v1.Pod) error {
	return makeLogDirs(w.podLogDir(string(pod.UID)), 1)
}

func (w *worker) makeContainerLogDir(pod *v1.Pod, name string) error {
	return makeLogDirs(filepath.Join(w.podLogDir(string(pod.UID)), name), logDepth)
}

// makeLogDirs makes the folder dir for logs, which is so deep below that of all
// logs. It does so through no link: the runtime would write to where that leads.
func makeLogDirs(dir string, depth int) error {
	above := dir
	for range depth {
		above = filepath.Dir(above)
	}
	err := os.MkdirAll(above, 0o755)
	if err == nil {
		_, err = safefile.MakeDirs(dir, depth, 0o755)
	}
	if err != nil {
		return fmt.Errorf("log folder: %w", err)
	}
	return nil
}

// nextAttempts returns which attempt comes next of containers of which the
// runtime does not have the last one: by what was reported last, and where it
// has none at all, by the log files that were written to.
func (w *worker) nextAttempts(s *situation) map[string]uint32 {
	if s.Pod == nil {
		return nil
	}
	uid, next := string(s.Pod.UID), s.missing(w.lastStatus(string(s.Pod.UID)))
	dirs, _ := os.ReadDir(w.podLogDir(uid)) // of links in it, the names alone are taken
	for _, d := range dirs {
		if s.instance().newest(d.Name()) != nil {
			continue
		}
		eachLog(filepath.Join(w.podLogDir(uid), d.Name()), func(n uint32, s safefile.Stat) {
			if s.IsRegular() && s.Size() > 0 {
				next[d.Name()] = max(next[d.Name()], n+1)
			}
		})
	}
	return next
}

// eachLog calls do for each file of a container's logs, with its attempt. A
// folder that is not there, or is a link, has none.
func eachLog(dir string, do func(attempt uint32, s safefile.Stat)) {
	d, err := safefile.OpenDir(dir, logDepth)
	if err != nil {
		return
	}
	defer d.Close()
	d.Each(func(name string) error {
		m := logAttempt.FindStringSubmatch(name)
		if m == nil {
			return nil
		}
		s, err := d.Stat(name)
		if n, bad := strconv.ParseUint(m[1], 10, 31); bad == nil && err == nil {
			do(uint32(n), s)
		}
		return nil
	})
}

// removeLogs removes the logs of an instance and the links to them.
func (w *worker) removeLogs(uid string) error {
	if w.keepLogs {
		return nil
	}
	dir := w.podLogDir(uid)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	if w.logLinks == "" {
		return nil
	}
	links, _ := filepath.Glob(filepath.Join(w.logLinks, fmt.Sprintf("%s_%s_*.log", w.key.Name, w.key.Namespace)))
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && filepath.Dir(filepath.Dir(to)) == dir {
			os.Remove(l)
		}
	}
	return nil
}

// linkLog makes the link by which log shippers find a container's log, and
// know what it is of. That there is none is no reason to stop a container.
func (w *worker) linkLog(a action, id string) {
	if w.logLinks == "" {
		return
	}
	log := filepath.Join(w.podLogDir(a.UID), a.Name, fmt.Sprintf("%d.log", a.Attempt))
	if _, err := os.Stat(log); err != nil {
		return
	}
	err := os.MkdirAll(w.logLinks, 0o755)
	if err == nil {
		err = os.Symlink(log, logLink(w.logLinks, w.key, a.Name, id))
	}
	if err != nil && !os.IsExist(err) {
		w.log.Warn("log has no link by container", "container", a.Name, "err", err)
	}
}

// removeContainer removes a dead container, then its termination log, its log
// files and their link.
func (w *worker) removeContainer(ctx context.Context, s *situation, a action) error {
	if err := gone(w.cri.RemoveContainer(ctx, a.ID)); err != nil {
		return err
	}
	if w.logLinks != "" {
		os.Remove(logLink(w.logLinks, w.key, a.Name, a.ID))
	}
	w.removeTerminationLog(s, a)
	if n := s.Observed.Instances[a.UID].newest(a.Name); n != nil && n.Attempt == a.Attempt {
		return nil // the successor takes over this attempt's number and log
	}
	log := filepath.Join(w.podLogDir(a.UID), logPath(a.Name, a.Attempt))
	for _, c := range s.Observed.Instances[a.UID].Containers {
		if where := c.status.GetLogPath(); c.ID == a.ID && where != "" {
			log = where // which may be where logs were when it was made
		}
	}
	return w.rotator.Remove(ctx, a.ID, log)
}
