// Package gc removes what pods that are gone left on disk.
package gc

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/disk"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/panics"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/saidonce"
	"monopod/agent/volume"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// GarbageEvery is the period of garbage collection (kubelet: the same).
const GarbageEvery = time.Minute

// Garbage removes the agent's files of pods and containers that are gone. Workers remove what
// their pods leave; Garbage removes what is left when an agent is killed or containers are removed
// by hand. The root dir has a folder for each of the agent's pods, which is removed last.
type Garbage struct {
	Root              *checkpoint.Root
	Cgroups           *node.PodCgroups
	Lister            *pleg.Lister
	Up                func() bool // the runtime answers
	PodLogs, LogLinks string      // folders; LogLinks "": no links are made
	Dead              func() int  // dead attempts kept of each container; 0 is 1
	Log               *slog.Logger
	Event             func(reason, message string) // records an event; nil: none
	Metrics           *metrics.Metrics
	Needs             *ImageNeeds // nil: pods with an unusable checkpoint stay

	// suspects are the pods, by uid, that looked orphaned in the last collection:
	// a pod that is just being created looks the same for a moment.
	suspects  map[string]bool
	logged    map[string]string // the last errors by uid, so that each is logged once
	unremoved saidonce.Error    // why logs stay
}

// Run collects every GarbageEvery until ctx ends.
func (g *Garbage) Run(ctx context.Context) {
	for tick := time.NewTicker(GarbageEvery); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
		if !g.Up() {
			continue
		}
		if all, err := g.Lister.Pods(ctx); err == nil { // else the next tick tries again
			g.Collect(ctx, all, false)
		}
	}
}

// Collect removes what these pods of the runtime do not need. sure: no pod is
// being created.
func (g *Garbage) Collect(ctx context.Context, pods map[manifests.Key]*pleg.Listed, sure bool) {
	g.CollectPods(ctx, uidsOf(pods), sure)
	live := g.logsOf(pods)
	g.collectLogs(live)
	g.collectLinks(live)
	g.collectAdopted(ctx, pods)
}

// collectAdopted drops the adopted sandboxes that are gone from their list.
func (g *Garbage) collectAdopted(ctx context.Context, pods map[manifests.Key]*pleg.Listed) {
	listed := map[string]bool{}
	for _, p := range pods {
		for _, s := range p.Sandboxes {
			listed[s.Id] = true
		}
	}
	var gone []string
	for _, id := range g.Root.Marks.Adopted() {
		if !listed[id] && g.Lister.IsGone(ctx, id) {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return
	}
	if err := g.Root.DropAdopted(gone); err != nil { // the next collection tries again
		g.Log.Debug("sandboxes that are gone stay in the list of adopted ones", "err", err)
	}
}

// uidsOf returns all uids in a listing.
func uidsOf(pods map[manifests.Key]*pleg.Listed) map[string]bool {
	uids := map[string]bool{}
	for _, p := range pods {
		maps.Copy(uids, p.Uids())
	}
	return uids
}

// logsOf returns the log paths of all containers in a listing.
func (g *Garbage) logsOf(pods map[manifests.Key]*pleg.Listed) map[string]bool {
	paths := map[string]bool{}
	for key, p := range pods {
		for _, c := range p.Containers {
			dir := podspec.LogDir(g.PodLogs, key, c.Labels[podspec.LabelPodUID])
			paths[filepath.Join(dir, podspec.LogPath(c.Metadata.GetName(), c.Metadata.GetAttempt()))] = true
		}
	}
	return paths
}

// CollectPods removes orphaned pods, which have neither a checkpoint nor anything
// in the runtime: an agent died while it removed or created them. One whose checkpoint
// is unusable is orphaned once no manifest can give it. A pod that the runtime has of another agent
// is no orphan: a kubelet's, of which monopod has the root dir now.
func (g *Garbage) CollectPods(ctx context.Context, running map[string]bool, sure bool) {
	suspects, logged := map[string]bool{}, map[string]string{}
	var others map[string]bool // all uids in the runtime; nil: not read yet
	dirs, _ := os.ReadDir(g.Root.Path("pods"))
	for _, d := range dirs {
		uid := d.Name()
		if !poduid.Valid(uid) || running[uid] {
			continue
		}
		what := g.Root.Remnant(uid)
		if what == checkpoint.NoRemnant || what == checkpoint.Unreadable && !g.Needs.lacks(uid) {
			continue
		}
		suspects[uid] = true
		if !sure && !g.suspects[uid] {
			continue
		}
		if others == nil {
			var err error
			if others, err = g.allUids(ctx); err != nil {
				continue // the next collection tries again
			}
		}
		if others[uid] {
			continue
		}
		err := g.contained(ctx, uid)
		if err == nil {
			delete(suspects, uid)
			g.logRemoved(uid, what)
			continue
		}
		if logged[uid] = err.Error(); logged[uid] != g.logged[uid] && ctx.Err() == nil {
			g.Log.Error("orphaned pod removal failed", append(panics.Logged(err), "uid", uid)...)
			if g.Event != nil {
				g.Event("ContainerGCFailed", fmt.Sprintf("removal of the orphaned pod with uid %s failed: %v", uid, err))
			}
		}
	}
	g.suspects, g.logged = suspects, logged
}

// allUids returns the uids of all that the runtime has, of the agent and of others.
func (g *Garbage) allUids(ctx context.Context) (map[string]bool, error) {
	if g.Lister == nil {
		return map[string]bool{}, nil
	}
	return g.Lister.AllUids(ctx)
}

// logRemoved logs that an orphaned pod was removed. With an unusable checkpoint nothing else
// records its volumes, so it is an event too.
func (g *Garbage) logRemoved(uid string, what checkpoint.Remnant) {
	if what != checkpoint.Unreadable {
		g.Log.Info("orphaned pod removed", "uid", uid)
		return
	}
	const text = "pod with an unusable checkpoint removed, with its volumes: " +
		"nothing of it is in the runtime, and no manifest gives it"
	g.Log.Warn(text, "uid", uid)
	if g.Event != nil {
		g.Event("UnusableCheckpoint", text+"; its uid was "+uid)
	}
}

// contained calls remove, whose panic is an error of this pod alone.
func (g *Garbage) contained(ctx context.Context, uid string) (err error) {
	defer func() {
		if panics.In(err) != nil {
			g.Metrics.Panic()
		}
	}()
	defer panics.Catch(&err)
	return g.remove(ctx, uid)
}

// remove removes the agent's files of an orphaned pod, unless a pod with that
// uid was accepted meanwhile.
func (g *Garbage) remove(ctx context.Context, uid string) error {
	release, free := g.Root.Claim(uid)
	if !free {
		return nil
	}
	defer release()
	if err := g.removeLogs(ctx, uid); err != nil {
		return err
	}
	if err := g.Cgroups.Destroy(ctx, uid); err != nil {
		return err
	}
	if err := volume.TearDown(ctx, g.Root.Dir, uid); err != nil {
		return err
	}
	g.Root.Forget(uid)
	return nil
}

// removeLogs removes the logs of a pod with any name, and their links.
func (g *Garbage) removeLogs(ctx context.Context, uid string) error {
	err := disk.Each(g.PodLogs, 0, func(name string) error {
		if UidOfLogs(name) != uid {
			return nil
		}
		return disk.RemoveAll(ctx, filepath.Join(g.PodLogs, name))
	})
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	g.eachLink(func(link, log string) {
		if UidOfLogs(podOfLog(log)) == uid {
			os.Remove(link)
		}
	})
	return nil
}

// UidOfLogs returns the uid in the name of a pod's log folder,
// <namespace>_<name>_<uid>; "" for other names.
func UidOfLogs(dir string) string {
	parts := strings.Split(dir, "_")
	if len(parts) != 3 || !poduid.Valid(parts[2]) {
		return ""
	}
	return parts[2]
}

// podOfLog returns the name of the pod's log folder that a container's log is in.
func podOfLog(log string) string { return filepath.Base(filepath.Dir(filepath.Dir(log))) }

// collectLinks removes the links to missing logs of the agent's pods, unless the
// container exists: a rotation takes the log's name away for a moment.
func (g *Garbage) collectLinks(live map[string]bool) {
	g.eachLink(func(link, log string) {
		if live[log] || checkpoint.Exists(log) || !g.ours(podOfLog(log)) {
			return
		}
		if err := os.Remove(link); err == nil {
			g.Log.Info("dangling log link removed", "file", link)
		}
	})
}

// eachLink calls do for each link to a log below PodLogs.
func (g *Garbage) eachLink(do func(link, log string)) {
	if g.LogLinks == "" {
		return
	}
	_ = disk.Each(g.LogLinks, 0, func(name string) error {
		link := filepath.Join(g.LogLinks, name)
		log, err := os.Readlink(link)
		if err == nil && filepath.Dir(filepath.Dir(filepath.Dir(log))) == g.PodLogs {
			do(link, log)
		}
		return nil
	})
}

// ours reports whether a log folder, by its name, is of one of the agent's pods. One without a
// checkpoint may be of another agent that had the root dir.
func (g *Garbage) ours(dir string) bool {
	uid := UidOfLogs(dir)
	return uid != "" && checkpoint.Exists(g.Root.PodDir(uid)) && g.Root.Remnant(uid) != checkpoint.Orphaned
}
