package pleg

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/disk"
	"monopod/agent/logrotate"
	"monopod/agent/metrics"
	"monopod/agent/podlog"
	"monopod/cri"
)

// LogRuntime is the runtime for the log rotation: only the agent's containers, as of the last
// listing.
type LogRuntime struct {
	Cri   *cri.Client
	Watch *Watch
}

// Running waits for the first relist. It returns none while the runtime is down:
// logs cannot be rotated then.
func (l LogRuntime) Running(ctx context.Context) ([]logrotate.Container, error) {
	select {
	case <-l.Watch.listed:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !l.Watch.Up() {
		return nil, nil
	}
	return l.Watch.Lister.index.logs(), nil
}

func (l LogRuntime) Log(ctx context.Context, id string) (string, error) {
	st, err := l.Cri.ContainerStatus(ctx, id)
	if cri.NotFound(err) || err == nil && st.State != rt.ContainerState_CONTAINER_RUNNING {
		return "", nil
	}
	return st.GetLogPath(), err
}

func (l LogRuntime) Reopen(ctx context.Context, id string) error {
	err := l.Cri.ReopenContainerLog(ctx, id)
	if cri.Unavailable(err) {
		return fmt.Errorf("%w: %w", logrotate.ErrUnanswered, err)
	}
	return err
}

// LogUse returns the disk usage of the logs of the running containers.
func (w *Watch) LogUse() []metrics.Log {
	var out []metrics.Log
	seen := map[string]bool{}
	for _, c := range w.Lister.index.logs() {
		dir := filepath.Dir(c.Log)
		if seen[dir] { // two attempts share the folder
			continue
		}
		seen[dir] = true
		if l, ok := logUseOf(dir); ok {
			out = append(out, l)
		}
	}
	return out
}

// logUseOf returns the disk usage of a container's logs, rotated ones included, from their folder
// .../<namespace>_<pod>_<uid>/<container>.
func logUseOf(dir string) (metrics.Log, bool) {
	pod := strings.Split(filepath.Base(filepath.Dir(dir)), "_")
	d, err := disk.OpenDir(dir, podlog.LogDepth)
	if err != nil {
		return metrics.Log{}, false
	}
	defer d.Close()
	if len(pod) != 3 {
		return metrics.Log{}, false
	}
	l := metrics.Log{Namespace: pod[0], Pod: pod[1], UID: pod[2], Container: filepath.Base(dir)}
	err = d.Each(func(name string) error {
		if s, err := d.Stat(name); err == nil && s.IsRegular() {
			l.Bytes += s.Size()
		}
		return nil
	})
	return l, err == nil
}
