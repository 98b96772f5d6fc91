package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"monopod/agent/admission"
	"monopod/agent/objects"
	"monopod/agent/worker"
	"monopod/manifests"
)

// retention keeps the ConfigMaps and Secrets that versions of pods need though no manifest gives
// them any more: the running version while its successor waits, the prepared one, the stopped one,
// and the restored one. It belongs to the sync loop's goroutine.
type retention struct {
	shared  *worker.Pool
	pods    *records
	table   *admission.Table
	running *sync.WaitGroup
	write   func() error // writes the objects to disk

	users   objects.Users
	given   []*manifests.Object // the objects of the last snapshot
	freed   bool                // an object has lost its last user since release
	unsaved bool                // the objects have changed since they were written
	failed  bool                // the last write failed
	saving  bool
	saved   chan error
}

// count counts the needs of the names whose versions have changed.
func (k *retention) count() {
	for _, r := range k.pods.takeTouched() {
		hadNeeds := !r.needs.IsEmpty()
		freed := k.users.Count(&r.needs, k.versions(r))
		k.freed = k.freed || freed
		if hadNeeds && r.needs.IsEmpty() {
			k.pods.drop(r.Key)
		}
	}
}

// versions returns the versions of a pod name that may need objects.
func (k *retention) versions(r *podRecord) objects.Versions {
	v := objects.Versions{Accepted: k.table.Admitted(r.Key), Offered: r.Offered, Prepared: r.Now.Prepare}
	if r.Trial != nil {
		v.Former = cmp.Or(r.Trial.Pinned, r.Trial.Former)
	}
	if r.Stop != nil {
		v.Stopped = r.Stop.Version
	}
	return v
}

// replace replaces the objects that manifests give. It returns those that were added, changed or
// removed.
func (k *retention) replace(given []*manifests.Object) []manifests.ObjectKey {
	k.count()
	k.unsaved = k.unsaved || !slices.Equal(given, k.given)
	k.given = given
	return k.shared.Disk.Objects.Replace(given, &k.users)
}

// release drops the objects that no version needs any more, and writes the rest.
func (k *retention) release(ctx context.Context) {
	k.count()
	if k.freed {
		k.freed = false
		k.unsaved = k.shared.Disk.Objects.Release(&k.users) || k.unsaved
	}
	if !k.unsaved || k.saving {
		return
	}
	k.unsaved, k.saving = false, true
	k.running.Go(func() {
		err := diskWrites{k.shared}.await(ctx, "objects that pods need", k.write)
		select {
		case k.saved <- err:
		case <-ctx.Done():
		}
	})
}

// wereSaved handles the result of the write. A failed one is retried at the next tick.
func (k *retention) wereSaved(err error) {
	k.saving, k.failed = false, err != nil
	if k.shared.Faults.IsNew("objects that pods need", err) {
		k.shared.Log.Error("ConfigMaps and Secrets that only former versions of pods need are not as they should be on disk; it is tried again", "err", err)
	}
}

// tick retries a failed write.
func (k *retention) tick() { k.unsaved = k.unsaved || k.failed }
