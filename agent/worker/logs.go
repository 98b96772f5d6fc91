package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
	"monopod/agent/podlog"
	"monopod/agent/podspec"
	"monopod/agent/safefile"
)

// logDir returns the log dir of one instance of the worker's pod.
func (w *Worker) logDir(uid string) string {
	return podspec.LogDir(w.PodLogs, w.Key, uid)
}

func (w *Worker) makeLogDir(pod *v1.Pod) error {
	return makeLogDirs(w.logDir(string(pod.UID)), 1)
}

func (w *Worker) MakeContainerLogDir(pod *v1.Pod, name string) error {
	return makeLogDirs(filepath.Join(w.logDir(string(pod.UID)), name), podlog.LogDepth)
}

// makeLogDirs makes the log folder dir, which is depth levels below the folder
// of all logs. It follows no link below that: the runtime would write to where
// the link leads.
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

// NextAttempts returns the next attempts of containers whose last attempt the
// runtime lacks: by the last status, and if the runtime has no attempt at all,
// by the log files with content.
func (w *Worker) NextAttempts(s *plan.Facts) map[string]uint32 {
	if s.Pod == nil {
		return nil
	}
	uid, next := string(s.Pod.UID), s.FindMissing(w.lastStatus(string(s.Pod.UID)))
	dirs, _ := os.ReadDir(w.logDir(uid)) // links in it are not followed
	for _, d := range dirs {
		if s.Instance().Newest(d.Name()) != nil {
			continue
		}
		podlog.EachLog(filepath.Join(w.logDir(uid), d.Name()), func(n uint32, s safefile.Stat) {
			if s.IsRegular() && s.Size() > 0 {
				next[d.Name()] = max(next[d.Name()], n+1)
			}
		})
	}
	return next
}

// removeLogs removes the logs of an instance and the links to them.
func (w *Worker) removeLogs(uid string) error {
	if w.KeepLogs {
		return nil
	}
	dir := w.logDir(uid)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	if w.LogLinks == "" {
		return nil
	}
	links, _ := filepath.Glob(filepath.Join(w.LogLinks, fmt.Sprintf("%s_%s_*.log", w.Key.Name, w.Key.Namespace)))
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && filepath.Dir(filepath.Dir(to)) == dir {
			os.Remove(l)
		}
	}
	return nil
}

// linkLog makes the link by which log shippers find and identify a container's
// log. A container runs without it, too.
func (w *Worker) linkLog(a plan.Action, id string) {
	if w.LogLinks == "" {
		return
	}
	log := filepath.Join(w.logDir(a.UID), a.Name, fmt.Sprintf("%d.log", a.Attempt))
	if _, err := os.Stat(log); err != nil {
		return
	}
	err := os.MkdirAll(w.LogLinks, 0o755)
	if err == nil {
		err = os.Symlink(log, podspec.LogLink(w.LogLinks, w.Key, a.Name, id))
	}
	if err != nil && !os.IsExist(err) {
		w.Log.Warn("log link failed", "container", a.Name, "err", err)
	}
}

// removeContainer removes a dead container, then its termination log, its log
// files and their link.
func (w *Worker) removeContainer(ctx context.Context, s *plan.Facts, a plan.Action) error {
	if err := Gone(w.Cri.RemoveContainer(ctx, a.ID)); err != nil {
		return err
	}
	if w.LogLinks != "" {
		os.Remove(podspec.LogLink(w.LogLinks, w.Key, a.Name, a.ID))
	}
	w.removeTerminationLog(s, a)
	if n := s.Observed.Instances[a.UID].Newest(a.Name); n != nil && n.Attempt == a.Attempt {
		return nil // the successor takes over this attempt's number and log
	}
	log := filepath.Join(w.logDir(a.UID), podspec.LogPath(a.Name, a.Attempt))
	for _, c := range s.Observed.Instances[a.UID].Containers {
		if where := c.Status.GetLogPath(); c.ID == a.ID && where != "" {
			log = where // the log folder may have been another one then
		}
	}
	return w.Rotator.Remove(ctx, a.ID, log)
}
