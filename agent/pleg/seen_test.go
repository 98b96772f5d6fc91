package pleg

import (
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CRI-O does not know when a container ended, or started, whose conmon was killed, and has
// time.Time{}.UnixNano() then.
func TestATimeThatTheRuntimeDoesNotKnow(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	none := time.Time{}.UnixNano()
	running := &seen{ContainerStatus: &rt.ContainerStatus{State: rt.ContainerState_CONTAINER_RUNNING, StartedAt: now.Add(-time.Hour).UnixNano()},
		started: now.Add(-time.Hour), last: now.Add(-time.Second)}
	for _, row := range []struct {
		name              string
		was               *seen
		before            time.Time
		start             int64
		started, finished time.Time
	}{
		{"seen while it ran", running, now.Add(-time.Second), running.StartedAt, running.started, now},
		{"it came and ended between two looks", nil, now.Add(-time.Minute), now.Add(-2 * time.Second).UnixNano(), now.Add(-2 * time.Second), now},
		{"ended before the agent started", nil, time.Time{}, now.Add(-time.Hour).UnixNano(), now.Add(-time.Hour), time.Time{}},
		{"never started", nil, time.Time{}, none, time.Time{}, time.Time{}},
	} {
		for _, end := range []int64{none, 0} {
			st := &rt.ContainerStatus{State: rt.ContainerState_CONTAINER_EXITED, StartedAt: row.start, FinishedAt: end, ExitCode: -1}
			if s := row.was.next(st, row.before, now); !s.started.Equal(row.started) || !s.finished.Equal(row.finished) {
				t.Errorf("%s, %d: started %s, finished %s", row.name, end, s.started, s.finished)
			}
		}
	}
	if got := stamp(none); !got.IsZero() {
		t.Error(got)
	}
}

// A container that was seen before it started did not start before that, whatever the
// runtime's clock says: else its run would be long enough to end a crash loop.
func TestACrashWhileTheClockIsBehindIsNoLongRun(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	created := &seen{ContainerStatus: &rt.ContainerStatus{State: rt.ContainerState_CONTAINER_CREATED}, last: now.Add(-20 * time.Second)}
	year := now.AddDate(-1, 0, 0)
	st := &rt.ContainerStatus{State: rt.ContainerState_CONTAINER_EXITED, StartedAt: year.UnixNano(), FinishedAt: year.Add(5 * time.Second).UnixNano()}
	if s := created.next(st, now.Add(-20*time.Second), now); s.finished.Sub(s.started) > time.Minute {
		t.Errorf("it ran from %s to %s", s.started, s.finished)
	}
}
