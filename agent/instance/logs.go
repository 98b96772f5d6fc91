package instance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/agent/pleg"
	"monopod/agent/podlog"
	"monopod/agent/podspec"
)

// logDir returns the log dir of one instance of the pod.
func (f *Files) logDir(uid string) string {
	return podspec.LogDir(f.Disk.PodLogs, f.Key, uid)
}

// MakeLogDir makes the folder of the pod's logs.
func (f *Files) MakeLogDir(pod *v1.Pod) error {
	return makeLogDirs(f.logDir(string(pod.UID)), 1)
}

// MakeContainerLogDir makes the folder of one container's logs.
func (f *Files) MakeContainerLogDir(pod *v1.Pod, name string) error {
	return makeLogDirs(filepath.Join(f.logDir(string(pod.UID)), name), podlog.LogDepth)
}

// makeLogDirs makes the log folder dir, which is depth levels below the folder of all logs. It
// follows no link below that: the runtime would write to the link's target.
func makeLogDirs(dir string, depth int) error {
	above := dir
	for range depth {
		above = filepath.Dir(above)
	}
	err := disk.MkdirAll(above, 0o755)
	if err == nil {
		_, err = disk.MakeDirs(dir, depth, 0o755)
	}
	if err != nil {
		return fmt.Errorf("log folder: %w", err)
	}
	return nil
}

// LoggedAttempts raises next, by container name, to the attempts after those that left a log with
// content. It checks only containers for which wanted is true.
func (f *Files) LoggedAttempts(uid string, next map[string]uint32, wanted func(name string) bool) {
	_ = disk.Each(f.logDir(uid), 1, func(name string) error {
		if !wanted(name) {
			return nil
		}
		podlog.EachLog(filepath.Join(f.logDir(uid), name), func(n uint32, s disk.Stat) { // follows no link
			if s.IsRegular() && s.Size() > 0 {
				next[name] = max(next[name], n+1)
			}
		})
		return nil
	})
}

// RemoveLogs removes the logs of an instance and the links to them.
func (f *Files) RemoveLogs(ctx context.Context, uid string) error {
	if f.Disk.KeepLogs {
		return nil
	}
	dir := f.logDir(uid)
	if err := disk.RemoveAll(ctx, dir); err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	if f.Disk.LogLinks == "" {
		return nil
	}
	links, _ := filepath.Glob(filepath.Join(f.Disk.LogLinks, fmt.Sprintf("%s_%s_*.log", f.Key.Name, f.Key.Namespace)))
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && filepath.Dir(filepath.Dir(to)) == dir {
			os.Remove(l)
		}
	}
	return nil
}

// LinkLog makes the link by which log shippers find and identify the log of a container's attempt.
// A container also runs without it.
func (f *Files) LinkLog(uid, container string, attempt uint32, id string) {
	if f.Disk.LogLinks == "" {
		return
	}
	log := filepath.Join(f.logDir(uid), podspec.LogPath(container, attempt))
	if _, err := os.Stat(log); err != nil {
		return
	}
	err := disk.MkdirAll(f.Disk.LogLinks, 0o755)
	if err == nil {
		err = os.Symlink(log, podspec.LogLink(f.Disk.LogLinks, f.Key, container, id))
	}
	if os.IsExist(err) {
		err = nil
	}
	f.complain("log link failed", container, err)
}

// RemoveContainerFiles removes the termination log, the log files and their link
// of a container that was removed from the runtime.
func (f *Files) RemoveContainerFiles(ctx context.Context, i *pleg.Instance, c *pleg.Container) error {
	if f.Disk.LogLinks != "" {
		os.Remove(podspec.LogLink(f.Disk.LogLinks, f.Key, c.Name, c.ID))
	}
	f.removeTerminationLog(c, i.UID)
	if n := i.Newest(c.Name); n != nil && n.Attempt == c.Attempt {
		return nil // the successor takes over this attempt's number and log
	}
	log := filepath.Join(f.logDir(i.UID), podspec.LogPath(c.Name, c.Attempt))
	if where := c.Status.GetLogPath(); where != "" {
		log = where // the log folder may have been another one then
	}
	return f.Disk.Rotator.Remove(ctx, c.ID, log)
}
