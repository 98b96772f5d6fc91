package pleg

import (
	"context"
	"path/filepath"
	"strings"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/logs"
	"monopod/agent/metrics"
	"monopod/agent/podlog"
	"monopod/agent/podspec"
	"monopod/agent/safefile"
	"monopod/cri"
	"monopod/manifests"
)

// LogRuntime is the runtime as those who rotate logs see it: only containers of
// ours, as the last relist saw them.
type LogRuntime struct {
	Cri   *cri.Client
	Watch *Watch
}

// Running waits for the first relist. While the runtime does not answer, there
// is nothing that could be done about a log.
func (l LogRuntime) Running(ctx context.Context) ([]logs.Container, error) {
	select {
	case <-l.Watch.listed:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !l.Watch.Up() {
		return nil, nil
	}
	return *l.Watch.logs.Load(), nil
}

func (l LogRuntime) Log(ctx context.Context, id string) (string, error) {
	st, err := l.Cri.ContainerStatus(ctx, id)
	if cri.NotFound(err) || err == nil && st.State != rt.ContainerState_CONTAINER_RUNNING {
		return "", nil
	}
	return st.GetLogPath(), err
}

func (l LogRuntime) Reopen(ctx context.Context, id string) error {
	return l.Cri.ReopenContainerLog(ctx, id)
}

// recordLogs remembers which containers run, and where their logs are unless they
// were made when logs had another place.
func (w *Watch) recordLogs(pods map[manifests.Key]*Listed) {
	var all []logs.Container
	for key, p := range pods {
		for _, c := range p.Containers {
			name := c.Metadata.GetName()
			if c.State != rt.ContainerState_CONTAINER_RUNNING || !fileName.MatchString(name) {
				continue
			}
			dir := podspec.LogDir(w.PodLogs, key, c.Labels[podspec.LabelPodUID])
			all = append(all, logs.Container{ID: c.Id, Log: filepath.Join(dir, podspec.LogPath(name, c.Metadata.GetAttempt()))})
		}
	}
	if w.logs.Swap(&all) == nil {
		close(w.listed)
	}
}

// LogUse returns what the logs of the containers that run take of the disk.
func (w *Watch) LogUse() []metrics.Log {
	var out []metrics.Log
	all, seen := w.logs.Load(), map[string]bool{}
	if all == nil {
		return nil
	}
	for _, c := range *all {
		dir := filepath.Dir(c.Log)
		if seen[dir] { // of two attempts
			continue
		}
		seen[dir] = true
		if l, ok := logUseOf(dir); ok {
			out = append(out, l)
		}
	}
	return out
}

// logUseOf returns what the logs of a container take, those that were rotated
// included. Whose they are the folder says: .../<namespace>_<pod>_<uid>/<container>.
func logUseOf(dir string) (metrics.Log, bool) {
	whose := strings.Split(filepath.Base(filepath.Dir(dir)), "_")
	d, err := safefile.OpenDir(dir, podlog.LogDepth)
	if err != nil {
		return metrics.Log{}, false
	}
	defer d.Close()
	if len(whose) != 3 {
		return metrics.Log{}, false
	}
	l := metrics.Log{Namespace: whose[0], Pod: whose[1], UID: whose[2], Container: filepath.Base(dir)}
	err = d.Each(func(name string) error {
		if s, err := d.Stat(name); err == nil && s.IsRegular() {
			l.Bytes += s.Size()
		}
		return nil
	})
	return l, err == nil
}
