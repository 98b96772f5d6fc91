package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"monopod/agent/checkpoint"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/panics"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/volume"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// GarbageEvery is how often what nobody came to remove is looked for, as with
// the kubelet.
const GarbageEvery = time.Minute

// Garbage removes what is ours on disk and belongs to nothing any more. Workers
// remove what their pods leave; this is for what an agent that was killed, or
// somebody who removes containers by hand, left behind. What is ours the root
// dir tells: it has a folder for each of our pods, which goes last.
type Garbage struct {
	Root              *checkpoint.Root
	Cgroups           *node.PodCgroups
	Lister            *pleg.Lister
	Up                func() bool // the runtime answers
	PodLogs, LogLinks string      // folders; no logLinks: none are made
	Dead              func() int  // how many dead containers are kept of each; 0 is 1
	Log               *slog.Logger
	Event             func(reason, message string) // nil: nobody wants to know of trouble
	Metrics           *metrics.Metrics

	// suspects are the pods, by uid, that looked gone the last time: a pod that
	// is just being made looks the same for a moment.
	suspects map[string]bool
	said     map[string]string // the last trouble by uid, so that it is said once
}

// Run collects each minute until ctx ends.
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
		if all, err := g.Lister.List(ctx); err == nil { // else there is another minute
			g.Collect(ctx, all.Pods, false)
		}
	}
}

// Collect removes what is not needed beside these pods of the runtime. sure:
// nobody is making a pod.
func (g *Garbage) Collect(ctx context.Context, pods map[manifests.Key]*pleg.Listed, sure bool) {
	g.CollectPods(ctx, uidsOf(pods), sure)
	live := g.logsOf(pods)
	g.collectLogs(live)
	g.collectLinks(live)
}

// uidsOf returns the uids of all that a listing has.
func uidsOf(pods map[manifests.Key]*pleg.Listed) map[string]bool {
	uids := map[string]bool{}
	for _, p := range pods {
		maps.Copy(uids, p.Uids())
	}
	return uids
}

// logsOf returns the paths of the logs of all containers that there are.
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

// CollectPods removes pods that have neither a checkpoint nor anything in the
// runtime: an agent died while it removed them, or before it made them.
func (g *Garbage) CollectPods(ctx context.Context, running map[string]bool, sure bool) {
	suspects, said := map[string]bool{}, map[string]string{}
	dirs, _ := os.ReadDir(g.Root.Path("pods"))
	for _, d := range dirs {
		uid := d.Name()
		if !poduid.Valid(uid) || running[uid] || !g.Root.Orphaned(uid) {
			continue
		}
		suspects[uid] = true
		if !sure && !g.suspects[uid] {
			continue
		}
		err := g.contained(ctx, uid)
		if err == nil {
			delete(suspects, uid)
			g.Log.Info("removed what was left of a former pod", "uid", uid)
			continue
		}
		if said[uid] = err.Error(); said[uid] != g.said[uid] && ctx.Err() == nil {
			g.Log.Error("what is left of a former pod cannot be removed", append(panics.Logged(err), "uid", uid)...)
			if g.Event != nil {
				g.Event("ContainerGCFailed", fmt.Sprintf("what is left of the former pod with uid %s cannot be removed: %v", uid, err))
			}
		}
	}
	g.suspects, g.said = suspects, said
}

// contained is remove, of which a panic is an error of this pod alone.
func (g *Garbage) contained(ctx context.Context, uid string) (err error) {
	defer func() {
		if panics.In(err) != nil {
			g.Metrics.Panic()
		}
	}()
	defer panics.Catch(&err)
	return g.remove(ctx, uid)
}

// remove removes all that is ours of a pod that is gone, unless one of that uid
// was accepted meanwhile.
func (g *Garbage) remove(ctx context.Context, uid string) error {
	release, free := g.Root.Claim(uid)
	if !free {
		return nil
	}
	defer release()
	if err := g.removeLogs(uid); err != nil {
		return err
	}
	if err := g.Cgroups.Destroy(ctx, uid); err != nil {
		return err
	}
	if err := volume.TearDown(ctx, g.Root.Dir, uid); err != nil {
		return err
	}
	g.Root.Users.Release(uid)
	return nil
}

// removeLogs removes the logs of a pod, whatever its name was, and the links.
func (g *Garbage) removeLogs(uid string) error {
	dirs, err := os.ReadDir(g.PodLogs)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	for _, d := range dirs {
		if UidOfLogs(d.Name()) != uid {
			continue
		}
		dir := filepath.Join(g.PodLogs, d.Name())
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("logs: %w", err)
		}
	}
	g.eachLink(func(link, log string) {
		if UidOfLogs(podOfLog(log)) == uid {
			os.Remove(link)
		}
	})
	return nil
}

// UidOfLogs returns whose the folder of logs of that name is, "" for a folder
// with another kind of name: <namespace>_<name>_<uid>.
func UidOfLogs(dir string) string {
	parts := strings.Split(dir, "_")
	if len(parts) != 3 || !poduid.Valid(parts[2]) {
		return ""
	}
	return parts[2]
}

// podOfLog returns the name of the pod's folder that a container's log is in.
func podOfLog(log string) string { return filepath.Base(filepath.Dir(filepath.Dir(log))) }

// collectLinks removes the links to logs of our pods that are there no more,
// nor of a container that is: its log may only be without its name for a moment.
func (g *Garbage) collectLinks(live map[string]bool) {
	g.eachLink(func(link, log string) {
		if live[log] || checkpoint.Exists(log) || !g.ours(podOfLog(log)) {
			return
		}
		if err := os.Remove(link); err == nil {
			g.Log.Info("removed the link to a log that is gone", "file", link)
		}
	})
}

// eachLink calls do for each link to a log in our folder of logs.
func (g *Garbage) eachLink(do func(link, log string)) {
	if g.LogLinks == "" {
		return
	}
	entries, _ := os.ReadDir(g.LogLinks)
	for _, e := range entries {
		link := filepath.Join(g.LogLinks, e.Name())
		log, err := os.Readlink(link)
		if err == nil && filepath.Dir(filepath.Dir(filepath.Dir(log))) == g.PodLogs {
			do(link, log)
		}
	}
}

// ours reports whether a folder of logs, by its name, is of a pod of ours.
func (g *Garbage) ours(dir string) bool {
	uid := UidOfLogs(dir)
	return uid != "" && checkpoint.Exists(g.Root.PodDir(uid))
}
