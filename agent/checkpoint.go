package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// checkpoint is what the agent remembers of a pod's instance on disk, in
// <root>/pods/<uid>/pod.json. It is written before anything of the instance is
// made, and removed after the last of it is gone.
type checkpoint struct {
	File     string      `json:"file"`     // the manifest it came from
	Digest   string      `json:"digest"`   // of the manifest, see manifests.Pod
	Accepted metav1.Time `json:"accepted"` // when the instance began: the pod's startTime
	// Boot is the run of the kernel in which a pod that starts after others was
	// let start last; "": unknown, which counts as this one.
	Boot string `json:"boot,omitempty"`
	// Pod is the accepted pod. Its deletionTimestamp is set once the instance
	// is being retired, its status once it has ended.
	Pod *v1.Pod `json:"pod"`
	// Condemned are the containers that must stop although the pod goes on, by id.
	Condemned map[string]condemned `json:"condemned,omitempty"`

	Hooked  map[string]string `json:"hooked,omitempty"`  // by container name: the id of the attempt whose postStart hook is done
	Verdict *verdict          `json:"verdict,omitempty"` // how the pod will have ended once it is stopped; nil: it is not to end
	Marks   map[string]string `json:"marks,omitempty"`   // by container name: the back-off that its next first attempt is marked with
	Renew   string            `json:"renew,omitempty"`   // the sandbox in whose place the pod is to get a new one, as somebody asked for

	unwritten bool // nothing of it is on disk: the disk took none
}

func (c *checkpoint) key() manifests.Key { return manifests.KeyOf(c.Pod) }
func (c *checkpoint) uid() string        { return string(c.Pod.UID) }

// retired reports whether the instance is to go, whatever the manifests say.
func (c *checkpoint) retired() bool { return c.Pod.DeletionTimestamp != nil }

// ended returns the phase in which the instance has ended, or "".
func (c *checkpoint) ended() v1.PodPhase {
	if p := c.Pod.Status.Phase; p == v1.PodSucceeded || p == v1.PodFailed {
		return p
	}
	return ""
}

// manifest returns the accepted pod as the Source offered it.
func (c *checkpoint) manifest() *manifests.Pod {
	p := c.Pod.DeepCopy()
	p.Status = v1.PodStatus{Phase: v1.PodPending}
	return &manifests.Pod{Pod: p, File: c.File, Digest: c.Digest}
}

// newCheckpoint returns the checkpoint of a pod that is accepted now.
func newCheckpoint(p *manifests.Pod, now metav1.Time) *checkpoint {
	return &checkpoint{File: p.File, Digest: p.Digest, Accepted: now, Pod: p.Pod}
}

// in returns a copy that says the instance was let start in this boot.
func (c *checkpoint) in(b boot) *checkpoint {
	d := *c
	d.Boot = b.ID
	return &d
}

// retire returns a copy that says the instance is to go.
func (c *checkpoint) retire(now metav1.Time) *checkpoint {
	d := *c
	d.Pod = c.Pod.DeepCopy()
	d.Pod.DeletionTimestamp = &now
	return &d
}

// end returns a copy that says the instance has ended with this status.
func (c *checkpoint) end(s v1.PodStatus) *checkpoint {
	d := *c
	d.Pod = c.Pod.DeepCopy()
	d.Pod.Status = s
	return &d
}

// hooked returns a copy that says that the container's postStart hook is done.
func (c *checkpoint) hooked(name, id string) *checkpoint {
	d := *c
	d.Hooked = maps.Clone(c.Hooked)
	if d.Hooked == nil {
		d.Hooked = map[string]string{}
	}
	d.Hooked[name] = id
	return &d
}

// settle returns a copy that says how the instance will have ended.
func (c *checkpoint) settle(v verdict) *checkpoint {
	d := *c
	d.Verdict = &v
	return &d
}

// mark returns a copy with other marks.
func (c *checkpoint) mark(marks map[string]string) *checkpoint {
	d := *c
	d.Marks = marks
	return &d
}

// save writes the checkpoint to disk for good.
func (r *root) save(c *checkpoint) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c.uid() == r.claimed {
		return fmt.Errorf("checkpoint of %s: what is left of a former pod is being removed", c.key())
	}
	if err := os.MkdirAll(r.podDir(c.uid()), 0o750); err != nil {
		return fmt.Errorf("checkpoint of %s: %w", c.key(), err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("checkpoint of %s: %w", c.key(), err)
	}
	if err := status.WriteFile(r.path("pods", c.uid(), "pod.json"), b, 0o600); err != nil {
		os.Remove(r.podDir(c.uid())) // if it is empty: nobody would know of it
		return fmt.Errorf("checkpoint of %s: %w", c.key(), err)
	}
	return nil
}

// checkpoints reads all checkpoints. One that cannot be read is said in the
// log and left out; its instance is then known from the runtime alone.
func (r *root) checkpoints(log *slog.Logger) ([]*checkpoint, error) {
	dirs, err := os.ReadDir(r.path("pods"))
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var all []*checkpoint
	for _, d := range dirs {
		b, err := os.ReadFile(r.path("pods", d.Name(), "pod.json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		c := &checkpoint{}
		if err == nil {
			err = json.Unmarshal(b, c)
		}
		if err == nil && (c.Pod == nil || c.uid() != d.Name() || !poduid.Valid(c.uid())) {
			err = errors.New("it is not the checkpoint of this pod")
		}
		if err != nil {
			log.Error("checkpoint is unusable and left aside", "file", r.path("pods", d.Name(), "pod.json"), "err", err)
			continue
		}
		for id, k := range c.Condemned {
			c.Condemned[id] = k.withCause()
		}
		all = append(all, c)
	}
	return all, nil
}

// forsaken reports whether a pod has a folder and no checkpoint in it.
func (r *root) forsaken(uid string) bool {
	_, err := os.Stat(r.path("pods", uid, "pod.json"))
	return errors.Is(err, fs.ErrNotExist) && exists(r.podDir(uid))
}

// claim keeps a pod from being accepted until release is called, so that what
// is left of a former one can be removed; not free: it was accepted.
func (r *root) claim(uid string) (release func(), free bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.forsaken(uid) {
		return nil, false
	}
	r.claimed = uid
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.claimed = ""
	}, true
}
