package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/synctest"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/cri/critest"
	"monopod/manifests"
)

// wipe ends the agent and removes its root dir. What is in the runtime goes too,
// or stays as that of an agent with another root dir.
func (w *walk) wipe() string {
	w.endIt()
	noErr(w.T, w.disk.whole(func() error { return os.RemoveAll(w.dir) }))
	clear(w.before)
	clear(w.lasts)
	clear(w.offered)
	clear(w.notes)
	clear(w.unwanted)
	if w.rand.IntN(2) == 0 {
		for _, b := range w.ours() {
			w.RemoveSandboxBehindBack(b.ID)
		}
		noErr(w.T, os.RemoveAll(w.logs))
		w.leftLogs = nil
		return "the root dir is wiped, with all in the runtime"
	}
	for _, c := range w.ourContainers() {
		w.orphans.Store(c.ID[:13], true)
	}
	for _, b := range w.ours() {
		w.orphans.Store(b.ID[:13], true)
		w.left = append(w.left, b)
	}
	w.leftLogs, _ = filepath.Glob(filepath.Join(w.logs, "*"))
	return "the root dir is wiped"
}

// removeLeft removes what agents left whose root dir was wiped.
func (w *walk) removeLeft() string {
	if len(w.left) == 0 {
		return ""
	}
	for _, b := range w.left {
		w.RemoveSandboxBehindBack(b.ID)
	}
	w.left = nil
	return "what was left is removed"
}

// toggleSuffix restarts the agent with other names of pods.
func (w *walk) toggleSuffix() string {
	w.endIt()
	w.noSuffix = !w.noSuffix
	clear(w.lasts) // which have other names
	w.launch()
	return fmt.Sprintf("the agent restarts, suffix %v", !w.noSuffix)
}

// endIt ends the agent one way or another, if it runs.
func (w *walk) endIt() {
	w.reap()
	if w.up && w.rand.IntN(2) == 0 {
		w.halt()
	}
	w.down()
	synctest.Wait()
}

// orphan reports whether an agent whose root dir was wiped made it.
func (w *walk) orphan(id string) bool {
	_, is := w.orphans.Load(id[:min(13, len(id))])
	return is
}

// ours are the sandboxes of this agent.
func (w *walk) ours() []critest.Sandbox {
	return slices.DeleteFunc(w.Sandboxes(), func(b critest.Sandbox) bool { return b.Namespace == strangers || w.orphan(b.ID) })
}

func (w *walk) ourContainers() []critest.Container {
	return slices.DeleteFunc(w.Containers(), func(c critest.Container) bool { return c.Namespace == strangers || w.orphan(c.ID) })
}

func (w *walk) ourRunning() []critest.Container {
	return slices.DeleteFunc(w.ourContainers(), func(c critest.Container) bool { return c.State != rt.ContainerState_CONTAINER_RUNNING })
}

// twice returns what of ours ran twice at a time.
func (w *walk) twice() string {
	for _, d := range w.DoubleRunning() {
		_, ids, _ := strings.Cut(strings.TrimSuffix(d, "]"), "[")
		mine := slices.DeleteFunc(strings.Fields(ids), w.orphan)
		if len(mine) > 1 && !strings.Contains(d, strangers+"/") {
			return d
		}
	}
	return ""
}

// touched returns what was done to pods of an agent whose root dir was wiped.
func (w *walk) touched() string {
	for _, b := range w.left {
		if now, there := w.Sandbox(b.ID); !there || now.Ready != b.Ready {
			return fmt.Sprintf("the sandbox of a wiped root dir was touched: %+v", b)
		}
	}
	return ""
}

// The model's node has so many cpus for pods.
const modelCPUs = 3

func cpuOf(p *manifests.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().Value() }

// startsLater reports whether the owner stopped a pod and started it again, and others took its
// room meanwhile.
func (w *walk) startsLater(p *manifests.Pod) bool {
	stop, is := w.sync.holds.State().Stopped[p.Key().String()]
	return is && stop.Starts && w.heldByOthers(p.Key())+cpuOf(p) > modelCPUs
}

// awaitsUID reports whether another pod has the uid that a manifest says, and keeps it as its own
// next version has no room.
func (w *walk) awaitsUID(p *manifests.Pod) bool {
	c := w.written(p.UID)
	if c.Pod == nil || c.Key() == p.Key() {
		return false
	}
	next := w.offered[c.Key()]
	return next != nil && next.UID != p.UID && w.heldByOthers(c.Key())+cpuOf(next) > modelCPUs
}

// heldByOthers returns the cpus that other pods have. What is stopped has none.
func (w *walk) heldByOthers(key manifests.Key) (cpus int64) {
	stopped := w.sync.holds.State().Stopped
	files, _ := filepath.Glob(filepath.Join(w.dir, "pods", "*", "pod.json"))
	for _, file := range files {
		c := &checkpoint.Checkpoint{}
		b, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(b, c) == nil && c.Key() != key && c.Ended() == "" {
			if _, is := stopped[c.Key().String()]; is {
				continue
			}
			cpus += cpuOf(&manifests.Pod{Pod: c.Pod})
		}
	}
	return cpus
}
