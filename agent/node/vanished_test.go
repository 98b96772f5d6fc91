package node

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/metrics"
	"monopod/agent/podspec"
	"monopod/cgroups"
	"monopod/cgroups/cgrouptest"
)

// watchedCgroups are pods' cgroups on a kernel that is played.
type watchedCgroups struct {
	*testing.T
	*PodCgroups
	mount string
}

func newWatchedCgroups(t *testing.T, pods int) *watchedCgroups {
	cfg := cgrouptest.V1(t)
	m, err := cgroups.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	w := &watchedCgroups{t, &PodCgroups{Metrics: metrics.New(metrics.Config{}), Manager: m, Machine: &Node{Base: podspec.Host{Memory: 1 << 30}, log: log}, Log: log, Burstable: map[string]int64{}}, cfg.Mount}
	if err := w.SetUp(t.Context(), cgroups.Cgroupfs); err != nil {
		t.Fatal(err)
	}
	for k := range pods {
		w.starts(fmt.Sprint("p", k))
	}
	w.NewlyVanished()
	w.isMissed("at rest", false)
	return w
}

func (w *watchedCgroups) isMissed(when string, want bool) {
	w.Helper()
	if w.NewlyVanished() != want {
		w.Errorf("%s: missed %v", when, !want)
	}
}

func podOf(uid string) *v1.Pod { return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}} }

func (w *watchedCgroups) starts(uid string) {
	w.appears(uid)
	w.sees(uid)
}

func (w *watchedCgroups) sees(uid string) {
	if w.Vanished(podOf(uid)) {
		w.Error("it is gone at once: ", uid)
	}
}

// appears makes a cgroup of which the agent knows nothing yet.
func (w *watchedCgroups) appears(uid string) {
	if err := w.Manager.Create(w.Context(), cgroups.BestEffort, uid, cgroups.Resources{Shares: 2}); err != nil {
		w.Fatal(err)
	}
}

func (w *watchedCgroups) removes(uid string) {
	if err := w.Destroy(w.Context(), uid); err != nil {
		w.Fatal(err)
	}
}

func (w *watchedCgroups) vanishes(uid string) {
	dirs, err := filepath.Glob(filepath.Join(w.mount, "*/kubepods/besteffort/pod"+uid))
	if err != nil || len(dirs) == 0 {
		w.Fatal(err, "no cgroup of ", uid)
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			w.Fatal(err)
		}
	}
}

func TestACgroupThatVanishesBesideOthersIsMissed(t *testing.T) {
	for _, row := range []struct {
		name   string
		happen func(w *watchedCgroups)
		want   bool
	}{
		{"one vanishes", func(w *watchedCgroups) { w.vanishes("p1") }, true},
		{"one starts", func(w *watchedCgroups) { w.starts("more") }, false},
		{"one is removed", func(w *watchedCgroups) { w.removes("p1") }, false},
		{"one vanishes and another starts", func(w *watchedCgroups) { w.vanishes("p1"); w.starts("more") }, true},
		{"one vanishes and another is removed", func(w *watchedCgroups) { w.vanishes("p1"); w.removes("p2") }, true},
		{"one vanishes, one starts, one is removed", func(w *watchedCgroups) { w.vanishes("p1"); w.starts("more"); w.removes("p2") }, true},
		{"one is removed and starts again", func(w *watchedCgroups) { w.removes("p1"); w.starts("p1") }, false},
		{"one that started since the last look vanishes", func(w *watchedCgroups) { w.starts("more"); w.vanishes("more") }, true},
		{"one that was seen late vanishes", func(w *watchedCgroups) { w.appears("more"); w.NewlyVanished(); w.sees("more"); w.vanishes("more") }, true},
		{"one that came back vanishes again", func(w *watchedCgroups) {
			w.vanishes("p1")
			w.NewlyVanished()
			w.starts("p1")
			w.NewlyVanished()
			w.vanishes("p1")
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWatchedCgroups(t, 4)
			row.happen(w)
			w.isMissed("then", row.want)
			w.isMissed("and once more", false)
		})
	}
}

// What a start and a removal cost is the same beside a hundred cgroups.
func TestCgroupsAreNotLookedForWhileNoneIsMissed(t *testing.T) {
	cost := map[int]uint64{}
	for _, n := range []int{1, 100} {
		w := newWatchedCgroups(t, n)
		look := func() {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w.NewlyVanished()
			runtime.ReadMemStats(&after)
			cost[n] += after.Mallocs - before.Mallocs
		}
		w.starts("more")
		look()
		w.removes("more")
		look()
	}
	if cost[100] > 2*cost[1] {
		t.Errorf("allocations: %v", cost)
	}
}
