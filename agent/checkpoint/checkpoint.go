// Package checkpoint stores on disk what an agent must remember when it is restarted.
//
// An older version of the agent may use the root dir in between. It ignores fields that it does not
// know, and omits them when it writes a file again; the comment of each such field states the
// effect. It does not know the files next.json (see NextFile), claims (of package volume), history
// and manifest-serial. It treats a retained object as one that manifests give, and removes it once
// the manifests were read and do not give it: what runs with that object runs on, and this agent
// later reports that its next start would fail. Stops, holds and the records of trials are unchanged.
// Nothing restarts when the agent is replaced by the older one, nor on the way back, but for the pods
// of sandboxes in adopted.json (see AdoptedFile). The tests have a table of what the older agent
// reads of each file.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/disk"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// Checkpoint is the agent's record of a pod's instance on disk, in
// <root>/pods/<uid>/pod.json. It is written before anything of the instance is
// created, and removed after everything of it.
type Checkpoint struct {
	File     string      `json:"file"`     // the manifest it came from
	Digest   string      `json:"digest"`   // of the manifest, see manifests.Restored
	Accepted metav1.Time `json:"accepted"` // the pod's startTime
	// Bounded is set if the version was accepted under the rule that bounds the files that are made
	// for a pod. Older agents had no such rule, so it does not apply to their versions.
	Bounded bool `json:"bounded,omitempty"`
	// Boot is the boot in which the pod was accepted or, if it starts after others or never
	// restarts, was last started; "": unknown, which counts as the current one. After an
	// interruption it is no boot.
	Boot string `json:"boot,omitempty"`
	// Active is how long the pod has been active, for a deadline that it has or may get; nil: not
	// known, as older agents kept it only for pods with a deadline.
	Active *Active `json:"active,omitempty"`
	// Removed is when the removal of the instance was recorded; nil: see its
	// deletionTimestamp.
	Removed *Mark `json:"removed,omitempty"`
	// Pod is the accepted pod. Its deletionTimestamp is set once the instance must be removed, its
	// status once it has ended.
	Pod *v1.Pod `json:"pod"`
	// KillDecisions are the decisions, by id, about containers that must stop although the pod
	// continues to run.
	KillDecisions map[string]KillDecision `json:"condemned,omitempty"`

	HooksDone      map[string]string `json:"hooked,omitempty"`  // by container name: the id of the attempt whose postStart hook is done
	Told           map[string]Told   `json:"told,omitempty"`    // by container id, of those that are told of changed config
	Result         *Result           `json:"verdict,omitempty"` // how the pod ends once it is stopped; nil: it runs on
	Marks          map[string]string `json:"marks,omitempty"`   // by container name: the back-off mark of its first attempt after a reset
	ReplaceSandbox string            `json:"renew,omitempty"`   // id of the sandbox that a restart request replaces
	// Excused is how many attempts of a Job's containers did not end by themselves, by container
	// name. Older agents count them as attempts of the Job.
	Excused map[string]uint32 `json:"excused,omitempty"`

	// Revision counts the versions that were accepted in place of the first one.
	Revision  int            `json:"revision,omitempty"`
	Changed   map[string]int `json:"changed,omitempty"`   // by container name: the revision since which its attempts are current
	Following *Following     `json:"following,omitempty"` // nil: everything follows the accepted version

	Unwritten bool // it is not on disk: the disk did not take it
	Next      bool `json:"-"` // it is in next.json: see Accepted
}

func (c *Checkpoint) Key() manifests.Key { return manifests.KeyOf(c.Pod) }
func (c *Checkpoint) Uid() string        { return string(c.Pod.UID) }

// IsRemoving reports whether the instance must be removed, whatever the manifests contain.
func (c *Checkpoint) IsRemoving() bool { return c.Pod.DeletionTimestamp != nil }

// Ended returns the phase in which the instance has ended, or "".
func (c *Checkpoint) Ended() v1.PodPhase {
	if p := c.Pod.Status.Phase; p == v1.PodSucceeded || p == v1.PodFailed {
		return p
	}
	return ""
}

// manifest returns the accepted pod as the Source offered it.
func (c *Checkpoint) manifest() *manifests.Pod {
	p := c.Pod.DeepCopy()
	p.Status = v1.PodStatus{Phase: v1.PodPending}
	version := c.Version()
	version.Pod = p
	return version
}

// Version returns the accepted version, which shares the pod of the checkpoint.
func (c *Checkpoint) Version() *manifests.Pod {
	return &manifests.Pod{Pod: c.Pod, File: c.File, Digest: c.Digest, Unbounded: !c.Bounded}
}

// NewCheckpoint returns the checkpoint of a pod that is accepted now.
func NewCheckpoint(p *manifests.Pod, now metav1.Time) *Checkpoint {
	return &Checkpoint{File: p.File, Digest: p.Digest, Accepted: now, Bounded: !p.Unbounded, Pod: p.Pod}
}

// ActiveFor returns how long the pod has been active, and whether that is counted in this boot: if
// not, it counts from the next save.
func (c *Checkpoint) ActiveFor(now Mark) (active time.Duration, counts bool) {
	if c.Active == nil {
		return 0, false
	}
	return c.Active.At(now)
}

// InBoot returns a copy that records that the instance started in this boot.
func (c *Checkpoint) InBoot(b Boot) *Checkpoint {
	d := *c
	d.Boot = b.ID
	return &d
}

// OfEarlierBoot reports whether the instance was last started before the machine booted, and was
// not stopped for that boot.
func (c *Checkpoint) OfEarlierBoot(now Mark) bool {
	return c.Boot != "" && c.Boot != noBoot && now.Boot != "" && c.Boot != now.Boot
}

// Removing returns a copy that records that the instance must be removed. at is the same moment as
// now; the rest of its grace period is counted from it.
func (c *Checkpoint) Removing(now metav1.Time, at Mark) *Checkpoint {
	d := *c
	d.Pod = c.Pod.DeepCopy()
	d.Pod.DeletionTimestamp, d.Removed = &now, &at
	return &d
}

// RemovingFor returns for how long the instance has been in removal.
func (c *Checkpoint) RemovingFor(wall time.Time, now Mark) time.Duration {
	if c.Removed != nil {
		if d, same := c.Removed.Since(now); same {
			return d
		}
	}
	// JSON keeps whole seconds of the time: count from the end of that second.
	return max(wall.Sub(c.Pod.DeletionTimestamp.Time)-time.Second, 0)
}

// WithActive returns a copy that records for how long the pod has been active until now, from which
// that time continues. With a zero mark it does not continue.
func (c *Checkpoint) WithActive(before time.Duration, now Mark) *Checkpoint {
	d := *c
	d.Active = &Active{Mark: now, Before: before}
	return &d
}

// WithEnd returns a copy that records that the instance has ended with this status.
func (c *Checkpoint) WithEnd(s v1.PodStatus) *Checkpoint {
	d := *c
	d.Pod = c.Pod.DeepCopy()
	d.Pod.Status = s
	return &d
}

// WithHookDone returns a copy that records that the container's postStart hook is done.
func (c *Checkpoint) WithHookDone(name, id string) *Checkpoint {
	d := *c
	d.HooksDone = maps.Clone(c.HooksDone)
	if d.HooksDone == nil {
		d.HooksDone = map[string]string{}
	}
	d.HooksDone[name] = id
	return &d
}

// WithResult returns a copy that records how the instance ends.
func (c *Checkpoint) WithResult(v Result) *Checkpoint {
	d := *c
	d.Result = &v
	return &d
}

// WithMarks returns a copy with these back-off marks.
func (c *Checkpoint) WithMarks(marks map[string]string) *Checkpoint {
	d := *c
	d.Marks = marks
	return &d
}

// Save writes the checkpoint to disk, synced.
func (r *Root) Save(c *Checkpoint) error { return r.save(c, disk.WriteFile) }

// SaveLightly is Save for content that need not survive a power cut, as it is about processes or
// will be decided again: a power cut may restore the previous checkpoint. It needs one fsync
// instead of two; an interruption is saved fully, as the power goes off after it.
func (r *Root) SaveLightly(c *Checkpoint) error {
	if c.Boot == noBoot {
		return r.Save(c)
	}
	return r.save(c, disk.ReplaceFile)
}

func (r *Root) save(c *Checkpoint, write func(string, []byte, os.FileMode) error) error {
	err := r.saveAs(c, r.checkpoint(c.Uid()), write)
	if err == nil {
		r.stored.put(c)
	}
	return err
}

func (r *Root) saveAs(c *Checkpoint, file string, write func(string, []byte, os.FileMode) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.claimed[c.Uid()] {
		return fmt.Errorf("checkpoint of %s: an orphaned pod with its uid is being removed", c.Key())
	}
	if err := disk.MkdirAll(r.PodDir(c.Uid()), 0o750); err != nil {
		return fmt.Errorf("checkpoint of %s: %w", c.Key(), err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("checkpoint of %s: %w", c.Key(), err)
	}
	if err := write(file, disk.Seal(b), 0o600); err != nil {
		os.Remove(r.PodDir(c.Uid())) // only if it is empty
		return fmt.Errorf("checkpoint of %s: %w", c.Key(), err)
	}
	return nil
}

// Checkpoints reads all checkpoints, including those of accepted next versions. An unusable one is
// logged and left out; its instance is then known from the runtime only. Pods have the defaults and
// digests of this build, whichever one stored them: only another manifest makes another pod.
func (r *Root) Checkpoints(log *slog.Logger) ([]*Checkpoint, error) {
	dirs, err := os.ReadDir(r.Path("pods"))
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var all, nexts []*Checkpoint
	for _, d := range dirs {
		next, err := r.loadNext(d.Name(), disk.ReadOrAside)
		if err != nil {
			r.lost(log, "checkpoint of a next version is unusable; ignoring it", err)
		}
		if next != nil {
			nexts = append(nexts, next)
		}
		c, err := r.load(d.Name(), disk.ReadOrAside)
		if err != nil {
			r.lost(log, "checkpoint is unusable; ignoring it: its pod is known from the runtime and its manifest alone", err)
			continue
		}
		r.stored.put(c)
		all = append(all, c)
	}
	return r.withNexts(all, nexts), nil
}

// PodsIn returns the pods that have a checkpoint in a root dir, which another process may have locked,
// and the versions that updates on trial may go back to. One that cannot be read is an error.
func PodsIn(root string) ([]*v1.Pod, error) {
	all, err := checkpointsIn(root)
	if err != nil {
		return nil, err
	}
	pods, err := formersIn(root)
	for _, c := range all {
		pods = append(pods, c.Pod)
	}
	return pods, err
}

// AcceptedIn returns the accepted version of each pod name as PodsIn does, sorted by name.
func AcceptedIn(root string) ([]*Checkpoint, error) {
	all, err := checkpointsIn(root)
	accepted := slices.Collect(maps.Values(Accepted(all)))
	slices.SortFunc(accepted, func(a, b *Checkpoint) int { return manifests.CompareKeys(a.Key(), b.Key()) })
	return accepted, err
}

// checkpointsIn reads the checkpoints of a root dir, those of next versions among them.
func checkpointsIn(root string) ([]*Checkpoint, error) {
	r := &Root{Dir: root}
	dirs, err := os.ReadDir(r.Path("pods"))
	if err != nil {
		return nil, fmt.Errorf("root dir: %w; name the agent's with --root", err)
	}
	var all []*Checkpoint
	for _, d := range dirs {
		c, err := r.load(d.Name(), disk.Read)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			all = append(all, c)
		}
		next, err := r.loadNext(d.Name(), disk.Read)
		if err != nil {
			return nil, err
		}
		if next != nil {
			all = append(all, next)
		}
	}
	return all, nil
}

// errUnusable reports that a checkpoint was read and is not one of its pod.
var errUnusable = errors.New("it is not the checkpoint of this pod")

// load reads a pod's checkpoint. The error is *disk.Damaged if another read would fail, too.
func (r *Root) load(uid string, read func(path string, parse func([]byte) error) error) (*Checkpoint, error) {
	return r.loadFrom(r.checkpoint(uid), uid, read)
}

func (r *Root) loadFrom(file, uid string, read func(path string, parse func([]byte) error) error) (*Checkpoint, error) {
	var c Checkpoint
	err := read(file, func(b []byte) error {
		if err := disk.JSON(&c)(b); err != nil {
			return err
		}
		if c.Pod == nil || c.Uid() != uid || !poduid.Valid(uid) {
			return errUnusable
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.Digest = manifests.Restored(c.Pod)
	for id, k := range c.KillDecisions {
		c.KillDecisions[id] = k.withCause()
	}
	return &c, nil
}

// checkpoint returns the path of the checkpoint of a pod.
func (r *Root) checkpoint(uid string) string { return r.Path("pods", uid, "pod.json") }

// Remains returns the names of the pods of which something is left: each has a dir until everything
// else of it is removed.
func (r *Root) Remains(log *slog.Logger) []string {
	names := map[string]string{}
	all, _ := r.Checkpoints(log)
	for _, c := range all {
		names[c.Uid()] = "pod " + c.Key().String()
	}
	dirs, _ := filepath.Glob(r.Path("pods", "*"))
	var out []string
	for _, dir := range dirs {
		name, ok := names[filepath.Base(dir)]
		if !ok {
			name = dir
		}
		out = append(out, name)
	}
	return out
}

// noBoot is the boot of a pod that was interrupted: the pod starts in its start order.
const noBoot = "none"

// Interrupted returns a copy that records that the pod starts from the beginning, in its start
// order, with a sandbox other than this one; "": it has none. The attempts of the excused
// containers, which end by that, do not count, nor does the time until the pod starts.
func (c *Checkpoint) Interrupted(sandbox string, excused ...string) *Checkpoint {
	d := *c
	d.Boot = noBoot
	if sandbox != "" {
		d.ReplaceSandbox = sandbox
	}
	return d.WithExcused(excused...)
}

// WithExcused returns a copy in which the present attempts of these containers do not count.
func (c *Checkpoint) WithExcused(names ...string) *Checkpoint {
	d := *c
	d.Excused = maps.Clone(c.Excused)
	for _, name := range names {
		if d.Excused == nil {
			d.Excused = map[string]uint32{}
		}
		d.Excused[name]++
	}
	return &d
}

// IsInterrupted reports whether the pod must start from the beginning, and has not started since it
// was interrupted.
func (c *Checkpoint) IsInterrupted() bool { return c.Boot == noBoot }

// WithSandboxReplaced returns a copy that records that the pod must get a new sandbox in place of
// this one.
func (c *Checkpoint) WithSandboxReplaced(sandbox string) *Checkpoint {
	d := *c
	d.ReplaceSandbox = sandbox
	return &d
}
