package agent

import (
	"time"
)

// logs takes how much of the logs is kept. As with the kubelet a negative size
// keeps logs from being rotated.
func (r *configReader) logs() {
	f, to := &r.file, &r.to.Logs
	if q := f.ContainerLogMaxSize; q != nil {
		if q.IsZero() {
			r.Refuse("containerLogMaxSize", "%s: must not be zero; a negative size means no rotation", q)
		}
		to.MaxSize = q.Value()
	}
	r.atLeast("containerLogMaxFiles", 2, &to.MaxFiles, f.ContainerLogMaxFiles)
	r.atLeast("containerLogMaxWorkers", 1, &to.Workers, f.ContainerLogMaxWorkers)
	r.atLeast("deadContainersPerContainer", 1, &r.to.DeadContainers, f.DeadContainersPerContainer)
	if d := r.duration("containerLogMonitorInterval", f.ContainerLogMonitorInterval, time.Second, time.Hour); d != 0 {
		to.Interval = d
	}
}

// atLeast takes a number, or refuses it.
func (r *configReader) atLeast(field string, low int, to, from *int) {
	if from != nil && *from < low {
		r.Refuse(field, "%d: must be at least %d", *from, low)
	}
	set(to, from)
}
