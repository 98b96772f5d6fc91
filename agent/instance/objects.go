package instance

import (
	"context"
	"time"

	"monopod/agent/podspec"
	"monopod/agent/volume"
	"monopod/manifests"
)

// refreshEvery is the wait before volumes that cannot show their objects are tried again.
const refreshEvery = time.Minute

// FollowObjects updates the volumes of a pod that show objects, if an object has changed or an
// update failed before; runs: the pod is set up, and has not ended. It returns when to call it
// again, zero for not at all, and the error if it is another one than before. Only one goroutine
// may call it.
func (f *Files) FollowObjects(ctx context.Context, p *manifests.Pod, n *podspec.Host, now time.Time, changed, runs bool) (time.Time, error) {
	if changed {
		f.refreshAt = now
	}
	if !runs {
		f.refreshAt, f.former = time.Time{}, nil // they are set up before containers start
	}
	if f.refreshAt.IsZero() || now.Before(f.refreshAt) {
		return f.refreshAt, nil
	}
	f.settingUp.Lock()
	defer f.settingUp.Unlock()
	var err error
	f.former, err = volume.Refresh(ctx, f.Disk.Root.Dir, p.Pod, f.volumeInput(p, n))
	f.refreshAt = time.Time{}
	if err != nil {
		f.refreshAt = now.Add(refreshEvery)
	}
	if !f.unshown.IsNew(err) {
		err = nil
	}
	return f.refreshAt, err
}

// Former returns the names of the volumes that keep their former content, as FollowObjects could not
// update them.
func (f *Files) Former() []string { return f.former }
