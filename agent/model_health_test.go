package agent

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/rollout"
	"monopod/agent/status"
	"monopod/manifests"
)

// editWatched edits a manifest to a version whose health matters, and which may never
// get ready, or to one for which it does not.
func (w *walk) editWatched() string {
	name := pick(w.rand, modelPods...)
	old, there := w.wishes[name]
	if !there {
		return ""
	}
	old.watched, old.unready = w.rand.IntN(4) > 0, w.rand.IntN(2) == 0
	old.label++
	w.wishes[name] = old
	w.deliver()
	return fmt.Sprintf("%s: watched %v, never ready %v", name, old.watched, old.unready)
}

func unreadies(c *v1.Container) bool { return c.ReadinessProbe != nil }

// chosen returns the version that must run of a pod name: the one that its manifest says,
// or the former one, if that says so. nil: that is bad.
func (w *walk) chosen(p *manifests.Pod, reported *v1.Pod, bad func(string, ...any)) *manifests.Pod {
	all := slices.DeleteFunc((&checkpoint.Root{Dir: w.dir}).Updates(slog.New(slog.DiscardHandler)),
		func(u *checkpoint.Update) bool { return manifests.KeyOf(u.Former) != p.Key() })
	says := slices.ContainsFunc(status.ProblemsOf(reported), func(line string) bool { return strings.HasPrefix(line, "update rolled back: ") })
	if len(all) == 0 {
		if w.isUnwanted(p) {
			bad("there is no record of its rollback by request")
			return nil
		}
		if says {
			bad("is said to be rolled back, and there is no record of it")
			return nil
		}
		return p
	}
	u := all[0]
	trial := rollout.Recorded(u, u.Boot, nil)
	chosen, _ := trial.Candidate(rollout.Offer{New: p})
	switch {
	case u.Tried != nil && manifests.Restored(u.Tried.DeepCopy()) != p.Digest && manifests.Restored(u.Former.DeepCopy()) != p.Digest:
		bad("the record of its update is of another version")
		return nil
	case u.Tried == nil || u.Reason != "":
	case w.isReported(p, reported) && reported.Status.Phase != v1.PodPending:
		bad("is still watched")
		return nil
	}
	if rolledBack := chosen != p && u.Reason != ""; rolledBack != says {
		bad("rolled back: %v, it says so: %v", rolledBack, says)
		return nil
	}
	if chosen == p && w.isUnwanted(p) {
		bad("is to run the version that gave way by request")
		return nil
	}
	return chosen
}

// isReported reports whether this version of a pod is the accepted one that is reported.
func (w *walk) isReported(p *manifests.Pod, reported *v1.Pod) bool {
	p = w.asKept(p, reported)
	return reported.UID == p.UID && w.written(p.UID).Digest == p.Digest
}
