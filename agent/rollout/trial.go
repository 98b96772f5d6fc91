package rollout

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/clip"
	"monopod/agent/update"
	"monopod/manifests"
	"monopod/manifests/poduid"
)

// Trial is a version of a pod that takes the place of one that worked, until it has shown that
// it works, too, or the former one that came back for it. A version is known by the digest of
// its manifest: uids, files and times do not count. A Trial never changes: each rule returns
// the next one.
//
// What counts as the former version is the last one that was not in doubt: one that ran before
// it was watched at all, or one that was found healthy, and that was ready once. A version that
// waits to start, or is watched, is not yet one to go back to.
type Trial struct {
	Former *manifests.Pod    // as it was accepted
	Images map[string]string // that it ran, by container
	Pinned *manifests.Pod    // Former with these: what comes back; nil: not known yet
	Tried  *manifests.Pod    // nil: the manifest is again that of Former
	Same   []string          // what Tried has as Former has it, if it came in place: see update.Unchanged
	Reason string            // why Tried gives way; "": it does not
	Asked  *checkpoint.Asked // a person asked for that; nil: it does not work
	Found  time.Time         // when that was found; zero: a previous agent found it
	Output string            // what its containers wrote last that made it so, in lines; "": not known, or nothing

	Worked bool              // Former was seen to work by this agent
	Unfit  bool              // Former is none to go back to: Tried stays whatever it does
	Safe   bool              // the disk has what it takes to go back: Tried may start
	Judged bool              // what is to become of Tried is on disk, or the disk does not take it: it counts
	Said   bool              // that Former is back was told
	Ended  map[string]string // ids of the containers that had ended before Tried was seen, by name
	Stuck  string            // why the record is not saved; "": it is, or will be

	Watch   Watch
	Health  update.Health // of Tried, or of Pinned once that is to run
	Changes int           // so far: what was saved earlier is not what is
}

// Offer is what is known when the version of a pod name is to be chosen that is to run.
type Offer struct {
	New    *manifests.Pod // as its manifest says
	Given  *manifests.Pod // as it was chosen last; nil: it was not since the agent started
	Runs   *manifests.Pod // the version that was let start last and has not ended; nil: none
	Unread bool           // New is what was accepted once: what its manifest says is not known
	Limits update.Limits  // of New
	Policy string         // of updates, see update.Planned
	Worked bool           // Runs was seen to work by this agent
}

// Candidate returns the version that is to run, and the trial from now on; nil: there is none.
// That version is the one that the manifest gives, unless it gave way to the former one, or
// what it takes to go back is not on disk yet.
func (t *Trial) Candidate(o Offer) (*manifests.Pod, *Trial) {
	switch {
	case t == nil:
		return begin(o, 0)
	case t.Unfit && t.Tried.Digest != o.New.Digest:
		return begin(o, t.Changes)
	case t.Tried != nil && t.Tried.Digest == o.New.Digest:
		return t.again(o)
	case t.Pinned != nil && t.Pinned.Digest == o.New.Digest && (t.Former.Digest != o.New.Digest || o.Unread):
		return t.unread(o)
	case t.Former.Digest == o.New.Digest && o.Unread:
		return o.New, t
	case t.Former.Digest == o.New.Digest:
		return t.reverted(o)
	case o.Limits.Within == 0:
		return o.New, nil
	case t.IsOn() && t.isTried(o.Runs) && !o.starts(): // what runs goes on to show what it does
		next := *t
		next.Changes++
		return o.New, next.tries(o)
	case !o.starts() && !t.isTried(o.Runs):
		return o.New, nil
	}
	next := (&Trial{Former: t.Former, Images: t.Images, Pinned: t.Pinned, Worked: t.Worked, Safe: t.Safe, Changes: t.Changes + 1}).tries(o)
	return next.until(o), next
}

// isTried reports whether p is the version that is, or was, on trial.
func (t *Trial) isTried(p *manifests.Pod) bool {
	return p != nil && t.Tried != nil && t.Tried.Digest == p.Digest
}

// begin begins a trial, if the version is one whose health matters: it takes the place of one
// that runs, and something of it starts. changes are those of the trial before.
func begin(o Offer, changes int) (*manifests.Pod, *Trial) {
	isKnown := o.Given != nil && o.Given.Digest == o.New.Digest
	if isKnown || o.Runs == nil || o.Runs.Digest == o.New.Digest || o.Limits.Within == 0 || !o.starts() {
		return o.New, nil
	}
	t := (&Trial{Former: o.Runs, Worked: o.Worked, Changes: changes + 1}).tries(o)
	return t.until(o), t
}

// tries is a trial of the offered version. What comes back in its place changes what that one has
// changed: where it came in place, nothing else.
func (t *Trial) tries(o Offer) *Trial {
	next := *t
	next.Tried, next.Same = o.New, nil
	if update.Planned(t.Former, o.New, o.Policy).Kind < update.Replace {
		next.Same = update.Unchanged(t.Former.Pod, o.New.Pod)
	}
	if next.Pinned == nil {
		return &next
	}
	return next.pin()
}

// starts reports whether anything starts as the offered version takes the place of the one
// that runs.
func (o *Offer) starts() bool {
	return o.Runs == nil || update.Planned(o.Runs, o.New, o.Policy).Kind >= update.Restart
}

// until returns what runs: the tried version once its trial is safe.
func (t *Trial) until(o Offer) *manifests.Pod {
	isAsked := t.Asked != nil && !t.Judged // until that is on disk, what was chosen before it counts
	switch {
	case (t.Safe || t.Unfit) && !(isAsked && o.Given != nil):
		return o.New
	case o.Given != nil:
		return o.Given
	case o.Runs != nil:
		return o.Runs
	}
	return o.New
}

// again is for the version that is tried already.
func (t *Trial) again(o Offer) (*manifests.Pod, *Trial) {
	next := *t
	next.Tried = o.New
	if t.Reason == "" || !t.Judged {
		return next.until(o), &next
	}
	next.Pinned = of(t.Pinned, o.New.File)
	return next.Pinned, &next
}

// unread is for a version that came back, and that is offered from its checkpoint.
func (t *Trial) unread(o Offer) (*manifests.Pod, *Trial) {
	next := *t
	next.Pinned = of(t.Pinned, o.New.File)
	return next.Pinned, &next
}

// reverted is for a manifest that is again that of the former version: if that does not run on,
// it comes back with the images that it ran. What was tried is forgotten, and is tried again if
// the manifest gives it again.
func (t *Trial) reverted(o Offer) (*manifests.Pod, *Trial) {
	if t.Pinned == nil || o.Runs != nil && o.Runs.Digest == o.New.Digest && o.Runs.UID == t.Former.UID {
		return o.New, nil
	}
	next := *t
	next.Pinned = of(t.Pinned, o.New.File)
	if t.Tried != nil {
		renewed := *next.Pinned // another object: it is told to be no longer in place of another
		next.Tried, next.Reason, next.Asked, next.Output, next.Stuck, next.Pinned = nil, "", nil, "", "", &renewed
		next.Changes++
	}
	return next.Pinned, &next
}

// of returns a version as one of a file.
func of(p *manifests.Pod, file string) *manifests.Pod {
	if p.File == file {
		return p
	}
	moved := *p
	moved.File = file
	return &moved
}

// IsOn reports whether the tried version may run, and is watched.
func (t *Trial) IsOn() bool {
	return t != nil && t.Safe && t.Tried != nil && t.Reason == "" && !t.Unfit
}

// Reserves reports whether the former version may have to start again: its room is kept. One that a
// person asked for waits for its room as any other.
func (t *Trial) Reserves() bool {
	return t != nil && t.Tried != nil && !t.Unfit && !t.Said && t.Asked == nil
}

// IsBack reports whether p is the former version, whose successor has failed.
func (t *Trial) IsBack(p *manifests.Pod) bool {
	return t != nil && p != nil && t.Tried != nil && t.Reason != "" && t.Judged && t.Pinned != nil && t.Pinned.Digest == p.Digest
}

// Saw takes over the health of a version that runs.
func (t *Trial) Saw(p *manifests.Pod, h update.Health) *Trial {
	if !t.IsOn() || !t.isTried(p) || t.Health == h {
		return t
	}
	next := *t
	next.Health, next.Watch = h, t.Watch.saw(h)
	return &next
}

// Interrupted is for a pod that is stopped, or may have been: whatever was seen of its version
// is no fault of that, which has its whole time once it runs again.
func (t *Trial) Interrupted() *Trial {
	if !t.IsOn() {
		return t
	}
	next := *t
	next.Watch = Watch{looked: t.Watch.looked}
	return &next
}

// Halted is Interrupted for a pod of which nothing is to run: nothing is to be seen of it.
func (t *Trial) Halted() *Trial {
	if !t.IsOn() {
		return t
	}
	next := *t.Interrupted()
	next.Health = update.Health{}
	return &next
}

// fileWithin is how long the disk may take for the record of a verdict before it counts without
// that.
const fileWithin = 10 * time.Second

// Look goes on with the trial, and returns when to look again; zero: when something was seen, or
// saved.
func (t *Trial) Look(s Sight) (next *Trial, o Outcome, again time.Time) {
	switch {
	case t.Asked != nil && !t.Judged: // it counts once it is on disk, and not sooner
		return t, Watching, time.Time{}
	case t.Reason != "" && !t.Judged:
		return t.awaitDisk(s.Now)
	case !t.IsOn() || !t.Health.Seen:
		return t, Watching, time.Time{}
	}
	on := *t
	w, o, why, again := t.Watch.Look(s, t.Health)
	on.Watch = w
	switch {
	case o == Healthy:
		return nil, o, time.Time{}
	case o == RollBack:
		on.Reason, on.Judged, on.Found = why, false, s.Now
		on.Changes++
		again = s.Now.Add(fileWithin)
	case w.Spent/step(s.Limits) > t.Watch.Spent/step(s.Limits):
		on.Changes++
	}
	return &on, o, again
}

// awaitDisk lets a verdict count that the disk does not take in time.
func (t *Trial) awaitDisk(now time.Time) (next *Trial, o Outcome, again time.Time) {
	until := t.Found.Add(fileWithin)
	if now.Before(until) {
		return t, Watching, until
	}
	judged := *t
	judged.Judged = true
	return &judged, Overdue, time.Time{}
}

// step is how much time is spent until that is saved: what an agent that is killed spent since
// then, the version has once more. A trial saves at most ten times for it.
func step(l update.Limits) time.Duration { return max(l.Within/10, 10*time.Second) }

// After is a trial whose version was seen first after these containers had ended.
func (t *Trial) After(ended map[string]string) *Trial {
	next := *t
	next.Ended = ended
	return &next
}

// Because adds what is known of its containers to why the tried version gives way.
func (t *Trial) Because(trouble string) *Trial {
	if trouble == "" {
		return t
	}
	next := *t
	next.Reason += ": " + trouble
	return &next
}

// WithSaid is a trial of which was told that the former version is back.
func (t *Trial) WithSaid() *Trial {
	next := *t
	next.Said = true
	return &next
}

// Filed is what became of saving a record.
type Filed struct {
	Err    error
	Trial  *Trial            // that was saved
	Images map[string]string // that the former version ran, if they were not known
	Unfit  bool              // or nothing of it ran, or it never worked
	Output string            // see Trial, if it was not known
}

// Filed takes over what became of saving. What changed meanwhile is to be saved once more.
func (t *Trial) Filed(f Filed) *Trial {
	isSame := t.Changes == f.Trial.Changes
	if t.Former != f.Trial.Former || t.Safe && !isSame {
		return t
	}
	next := *t
	next.Stuck = ""
	if t.Reason != "" && t.Output == "" {
		next.Output = f.Output
	}
	switch {
	case f.Err != nil && !t.Safe:
		next.Stuck = f.Err.Error()
	case f.Err != nil:
	case t.Pinned == nil:
		next.Images, next.Unfit = f.Images, f.Unfit
		next = *next.pin()
		next.Safe = !next.Unfit
	default:
		next.Safe = true
	}
	next.Judged = next.Judged || isSame && t.Reason != "" && (t.Asked == nil || f.Err == nil)
	return &next
}

// pin makes the version that comes back. It keeps the uid of the former one, of which nothing
// is left when it starts: a worker runs one instance at a time.
func (t *Trial) pin() *Trial {
	next := *t
	p, all := update.Pin(t.Former.Pod, t.Images, t.Same)
	if next.Unfit = next.Unfit || !all; next.Unfit {
		return &next
	}
	p.Status = v1.PodStatus{Phase: v1.PodPending}
	next.Pinned = accepted(p, t.Former.File)
	next.Pinned.Unbounded = t.Former.Unbounded
	return &next
}

func accepted(p *v1.Pod, file string) *manifests.Pod {
	return &manifests.Pod{Pod: p, File: file, Digest: manifests.Restored(p)}
}

// Record is the trial as it is saved in a boot.
func (t *Trial) Record(boot string) *checkpoint.Update {
	u := &checkpoint.Update{Former: t.Former.Pod, File: t.Former.File, Bounded: !t.Former.Unbounded, Images: t.Images, Unchanged: t.Same,
		Reason: t.Reason, Output: t.Output, Asked: t.Asked, Boot: boot, Spent: t.Watch.Spent}
	if t.Tried != nil {
		u.Tried = t.Tried.Pod
	}
	return u
}

// Recorded returns the trial that a previous agent left; nil: it cannot be gone on with. Pods
// get the defaults and digests of this build. A boot other than that of the record restarts its
// watch: what a reboot does to a pod is not the fault of its version. last is the version of the
// pod that was let start last; nil: none.
func Recorded(u *checkpoint.Update, boot string, last *manifests.Pod) *Trial {
	t := &Trial{Former: accepted(u.Former, u.File), Images: u.Images, Same: u.Unchanged, Reason: u.Reason, Output: u.Output, Asked: u.Asked, Safe: true, Judged: u.Reason != ""}
	t.Former.Unbounded = !u.Bounded
	if u.Tried != nil {
		t.Tried = accepted(u.Tried, u.File)
	}
	if u.Boot == boot {
		t.Watch.Spent = u.Spent
	}
	if t = t.pin(); t.Unfit {
		return nil
	}
	t.Said = t.IsBack(last)
	return t
}

// Line is what is to be said of a version that gave way, or whose record cannot be saved.
type Line struct {
	Pod   *manifests.Pod
	Text  string
	Final bool // it gave way, and is not tried again
}

// Line returns it; an empty text: there is nothing to say.
func (t *Trial) Line() Line {
	switch {
	case t == nil || t.Tried == nil:
	case t.Stuck != "":
		return Line{Pod: t.Tried, Text: "what it may have to go back to is not on disk: " + t.Stuck}
	case t.Reason != "" && t.Judged:
		return Line{Pod: t.Tried, Text: t.told(), Final: true}
	}
	return Line{}
}

// Told returns what is to be said of a version that comes back, or that runs on as the record of
// the trial of the next one cannot be saved; "": it does neither.
func (t *Trial) Told(p *manifests.Pod) string {
	if t != nil && t.Stuck != "" && !t.Safe && p != nil && p.Digest == t.Former.Digest {
		return "update waits: " + t.Line().Text
	}
	if !t.IsBack(p) {
		return ""
	}
	return t.told()
}

func (t *Trial) told() string {
	version, back := "the former version", "comes back"
	if t.Asked != nil {
		version = fmt.Sprintf("version %s (%s)", id(t.Former), images(t.Former))
	}
	if t.Said {
		back = "is back until the manifest changes"
	}
	return fmt.Sprintf("update rolled back: %s; %s %s", t.what(), version, back)
}

// what says which version gave way, and why.
func (t *Trial) what() string {
	return fmt.Sprintf("version %s (%s): %s", id(t.Tried), images(t.Tried), t.Reason)
}

// Event is what is told once of a version that gave way, of at most so many bytes.
func (t *Trial) Event(limit int) string {
	text := fmt.Sprintf("%s; version %s is back (%s)", t.what(), id(t.Former), images(t.Pinned))
	const says = "; the last output:\n"
	if t.Output != "" && len(text)+len(says) < limit {
		text += says + clip.Tail(t.Output, limit-len(text)-len(says))
	}
	return text
}

// id is by which people know the version of a manifest: the beginning of its hash.
func id(p *manifests.Pod) string { return fmt.Sprintf("%.8s", hash(p)) }

func hash(p *manifests.Pod) string { return string(poduid.HashOf(p.Pod)) }

func images(p *manifests.Pod) string { return strings.Join(imagesOf(p), ", ") }

func imagesOf(p *manifests.Pod) (all []string) {
	for _, c := range p.Spec.Containers {
		all = append(all, c.Image)
	}
	return all
}
