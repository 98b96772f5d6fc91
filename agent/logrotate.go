package agent

import (
	"context"
	"path/filepath"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/logs"
	"monopod/cri"
	"monopod/manifests"
)

// logRuntime is the runtime as those who rotate logs see it: only containers of
// ours, as the last relist saw them.
type logRuntime struct {
	cri   *cri.Client
	watch *watch
}

// Running waits for the first relist. While the runtime does not answer, there
// is nothing that could be done about a log.
func (l logRuntime) Running(ctx context.Context) ([]logs.Container, error) {
	select {
	case <-l.watch.listed:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !l.watch.Up() {
		return nil, nil
	}
	return *l.watch.logs.Load(), nil
}

func (l logRuntime) Log(ctx context.Context, id string) (string, error) {
	st, err := l.cri.ContainerStatus(ctx, id)
	if cri.NotFound(err) || err == nil && st.State != rt.ContainerState_CONTAINER_RUNNING {
		return "", nil
	}
	return st.GetLogPath(), err
}

func (l logRuntime) Reopen(ctx context.Context, id string) error {
	return l.cri.ReopenContainerLog(ctx, id)
}

// noteLogs remembers which containers run, and where their logs are unless they
// were made when logs had another place.
func (w *watch) noteLogs(pods map[manifests.Key]*listed) {
	var all []logs.Container
	for key, p := range pods {
		for _, c := range p.containers {
			name := c.Metadata.GetName()
			if c.State != rt.ContainerState_CONTAINER_RUNNING || !fileName.MatchString(name) {
				continue
			}
			dir := podLogDir(w.podLogs, key, c.Labels[labelPodUID])
			all = append(all, logs.Container{ID: c.Id, Log: filepath.Join(dir, logPath(name, c.Metadata.GetAttempt()))})
		}
	}
	if w.logs.Swap(&all) == nil {
		close(w.listed)
	}
}
