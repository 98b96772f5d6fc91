package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/checkpoint"
	"monopod/agent/update"
	"monopod/manifests"
)

// volumeOf is where a pod has its volume v; "": it has none.
func (w *walk) volumeOf(uid types.UID) string {
	dir := filepath.Join(w.dir, "pods", string(uid), "volumes/kubernetes.io~empty-dir/v")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// withVolume returns the pods, as reported, that have it.
func (w *walk) withVolume() (pods []*v1.Pod) {
	for _, name := range modelPods {
		if p, ok := w.store.Pod("default/" + w.podName(name)); ok && w.volumeOf(p.UID) != "" {
			pods = append(pods, p)
		}
	}
	return pods
}

// modelLock is what the model's pods with a volume are locked by.
const modelLock = "run/lock"

// turnLock lets a pod lock itself, or release that.
func (w *walk) turnLock() string {
	all := w.withVolume()
	if len(all) == 0 {
		return ""
	}
	reported := pick(w.rand, all...)
	file := filepath.Join(w.volumeOf(reported.UID), modelLock)
	if os.Remove(file) == nil {
		return reported.Name + ": releases its lock"
	}
	if os.MkdirAll(filepath.Dir(file), 0o755) != nil || os.WriteFile(file, nil, 0o600) != nil {
		return "" // the disk takes none
	}
	w.succession.mu.Lock()
	w.succession.locked[reported.UID] = time.Now()
	w.succession.mu.Unlock()
	return reported.Name + ": locks itself"
}

// releaseLocks ends what pods lock.
func (w *walk) releaseLocks() {
	files, _ := filepath.Glob(filepath.Join(w.dir, "pods/*/volumes/kubernetes.io~empty-dir/v", modelLock))
	for _, file := range files {
		_ = os.Remove(file)
	}
}

// lockedSince says that a pod had locked itself when it was decided that an instance of it
// goes; "": it had not, or for longer than a lock counts. The succession is locked.
func (w *walk) lockedSince(p *v1.Pod, goes time.Time) string {
	since, ever := w.succession.locked[p.UID]
	lasts := goes.Sub(since)
	if !ever || p.Annotations["monopod.update-lock"] == "" || lasts < 5*time.Second || lasts > 55*time.Minute {
		return ""
	}
	if _, err := os.Stat(filepath.Join(w.volumeOf(p.UID), modelLock)); err != nil {
		return ""
	}
	return "it has locked itself"
}

// note is a file that a pod wrote into its volume.
type note struct {
	path     string
	uid      types.UID
	accepted time.Time
	of       *manifests.Pod // the version that wrote it
	offers   int            // so many came until then
}

// writeNote lets a pod write a file into its volume.
func (w *walk) writeNote() string {
	all := w.withVolume()
	if len(all) == 0 || !w.up {
		return ""
	}
	reported := pick(w.rand, all...)
	key := manifests.KeyOf(reported)
	p := w.offered[key]
	c := w.written(reported.UID)
	path := filepath.Join(w.volumeOf(reported.UID), "note")
	// One that is accepted again under the uid must not look like this one, to the second. One that
	// waits for the uid of another has nothing yet, nor has a pod whose manifest asks for another uid by now, or for none.
	asksForUID := p != nil && p.UID != reported.UID && (isPinned(p.UID) || isPinned(reported.UID))
	if p == nil || asksForUID || c.Pod == nil || manifests.KeyOf(c.Pod) != key || c.Digest != p.Digest || c.Ended() != "" || time.Since(c.Accepted.Time) < 2*time.Second || os.WriteFile(path, []byte("x"), 0o600) != nil {
		return ""
	}
	if w.mayStillGo(c) {
		return ""
	}
	w.succession.mu.Lock()
	defer w.succession.mu.Unlock()
	w.notes[key] = note{path, reported.UID, c.Accepted.Time, p, len(w.succession.offers[key])}
	return key.String() + ": writes into its volume"
}

// mayStillGo reports whether the manifest of a pod was removed since it was accepted: that may not
// be carried out yet, though the manifest is back.
func (w *walk) mayStillGo(c *checkpoint.Checkpoint) bool {
	if c.Pod == nil {
		return false
	}
	w.succession.mu.Lock()
	defer w.succession.mu.Unlock()
	return c.Accepted.Time.Before(w.succession.gone[c.Key()])
}

// lostNotes names what a pod had written and is gone though the pod is the same, and a pod
// that is another though its manifest asked for none.
func (w *walk) lostNotes() string {
	for key, n := range w.notes {
		c := w.written(n.uid)
		_, err := os.Stat(n.path)
		switch is := c.Pod != nil && c.Accepted.Time.Equal(n.accepted); {
		case is && c.Ended() == "" && c.Result == nil && err != nil:
			return fmt.Sprintf("%s is the same pod, and what it wrote is gone: %v", key, err)
		case !is && w.isInPlaceSince(key, n):
			return fmt.Sprintf("%s is another pod than %s, which nothing asked for", key, n.uid)
		case !is:
			delete(w.notes, key)
		}
	}
	return ""
}

// isInPlaceSince reports whether all that the manifests said of a pod since a note, one thing
// after the other in any order, leaves it the same pod.
func (w *walk) isInPlaceSince(key manifests.Key, n note) bool {
	w.succession.mu.Lock()
	all := append([]*manifests.Pod{n.of}, w.succession.offers[key][n.offers:]...)
	w.succession.mu.Unlock()
	for _, a := range all {
		if a == nil || a.Spec.RestartPolicy != v1.RestartPolicyAlways || a.Spec.ActiveDeadlineSeconds != nil { // else it may end
			return false
		}
		for _, b := range all {
			if b == nil || update.Planned(a, b, update.PolicyInPlace).Kind == update.Replace {
				return false
			}
		}
	}
	return true
}
