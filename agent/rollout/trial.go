package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/clip"
	"monopod/agent/update"
	"monopod/manifests"
	"monopod/manifests/annotations"
	"monopod/manifests/poduid"
)

// Trial is the trial of a version that replaces one that worked, until it has shown that it works,
// too; or the former version that replaces it after it failed. A version is identified by the
// digest of its manifest: uids, files and times do not count. A Trial never changes: each rule
// returns the next one.
//
// The former version is the last one that was not in doubt: one that ran before versions were
// watched, or one that was found healthy, and that was ready once. A version that waits to start,
// or is on trial, cannot be rolled back to yet.
type Trial struct {
	Former *manifests.Pod    // the former version as it was accepted
	Images map[string]string // the images that Former ran, by container
	Pinned *manifests.Pod    // Former with these images, which a rollback starts; nil: not known yet
	Tried  *manifests.Pod    // the version on trial; nil: the manifest is again that of Former
	Same   []string          // what Tried has in common with Former, if it is an in-place update: see update.Unchanged
	Reason string            // why Tried is rolled back; "": it is not
	Asked  *checkpoint.Asked // the rollback was requested; nil: Tried does not work
	Next   *manifests.Pod    // the version that the manifest gives while Tried still runs; nil: Tried, or none was offered since
	Found  time.Time         // when that was found; zero: by a previous agent
	Output string            // the last output of its containers that explains the failure, in lines; "": not known, or none

	Worked bool              // this agent observed that Former worked
	Unfit  bool              // Former cannot be rolled back to: Tried stays whatever happens
	Safe   bool              // the disk has what a rollback needs: Tried may start
	Judged bool              // the verdict on Tried is on disk, or the disk did not take it in time: it counts
	Said   bool              // the event that Former is back was recorded
	Ended  map[string]string // ids, by name, of the containers that had ended before Tried was first observed
	Stuck  string            // why the record is not saved; "": it is saved, or will be

	Watch   Watch
	Health  update.Health // of Tried, or of Pinned once that runs
	Changes int           // the number of changes so far: a record saved with fewer is outdated
}

// Offer is the input for choosing the version of a pod name that runs.
type Offer struct {
	New    *manifests.Pod // as its manifest gives it
	Given  *manifests.Pod // the last choice; nil: none since the agent started
	Runs   *manifests.Pod // the version that runs, or ran when its owner stopped it, and has not ended; nil: none
	Ended  *manifests.Pod // the version that ran last, if it has ended; nil: Runs, or none
	Unread bool           // New is from its checkpoint: the content of its manifest is not known
	Limits update.Limits  // the limits of New
	Policy string         // the update policy, see update.Planned
	Worked bool           // this agent observed that Runs works
}

// Candidate returns the version that runs, and the trial from now on; nil: none. The version is the
// one that the manifest gives, unless it was rolled back, or what a rollback needs is not on disk
// yet.
func (t *Trial) Candidate(o Offer) (*manifests.Pod, *Trial) {
	switch {
	case t == nil:
		return begin(o, 0)
	case t.Unfit && t.Tried.Digest != o.New.Digest:
		return begin(o, t.Changes)
	case t.Tried != nil && t.Tried.Digest == o.New.Digest:
		return t.again(o)
	case t.isOf(o):
		return t.beside(o)
	case t.isBesideAsked(o): // what a person asked for has not come yet: what runs is what the new version follows
		o.Given = o.Runs
		return begin(o, t.Changes)
	case t.Pinned != nil && t.Pinned.Digest == o.New.Digest && (t.Former.Digest != o.New.Digest || o.Unread):
		return t.unread(o)
	case t.Former.Digest == o.New.Digest && o.Unread && !t.isPinned(o.Given):
		return o.New, t
	case t.Former.Digest == o.New.Digest:
		return t.reverted(o)
	case o.Limits.Within == 0:
		return o.New, nil
	case t.IsOn() && o.Runs != nil && o.Runs.Digest == o.New.Digest: // it started when the record was of the version before
		return o.New, t.started(o.New, o.Policy)
	case !o.starts() && !t.isTried(o.Runs):
		return o.New, nil
	}
	next := (&Trial{Former: t.Former, Images: t.Images, Pinned: t.Pinned, Worked: t.Worked, Safe: t.Safe, Changes: t.Changes + 1}).tries(o)
	return next.until(o), next
}

// isOf reports whether the version that runs is on trial, or has just failed or ended, while the
// manifest gives another one. That one may have to wait: until it starts the trial goes on, so that a
// version that does not work gives way meanwhile. A version that comes after the verdict ends the trial.
func (t *Trial) isOf(o Offer) bool {
	switch {
	case !t.isTried(cmp.Or(o.Runs, o.Ended)) || t.Unfit || t.Asked != nil || t.Pinned == nil:
		return false
	case t.Reason == "":
		return t.Safe
	}
	return o.Given == nil || t.Next != nil && t.Next.Digest == o.New.Digest
}

// isBesideAsked reports whether a version that works still runs, though a person asked for another one,
// as that one waits, while the manifest gives a third.
func (t *Trial) isBesideAsked(o Offer) bool {
	return t.Asked != nil && o.Worked && t.isTried(o.Runs) && !t.isPinned(o.New) && t.Former.Digest != o.New.Digest
}

// beside returns the version that is offered while the running one is on trial, and the trial of
// the latter. Once that has failed, the former version comes first.
func (t *Trial) beside(o Offer) (*manifests.Pod, *Trial) {
	next := *t
	next.Next = o.New
	if t.Former.Digest == o.New.Digest || t.Reason != "" && t.Judged {
		next.Pinned = of(t.Pinned, o.New.File)
		return next.Pinned, &next
	}
	return o.New, &next
}

// started returns the trial once another version than the one on trial runs. If nothing of that
// started, the watch goes on.
func (t *Trial) started(p *manifests.Pod, policy string) *Trial {
	next := &Trial{Former: t.Former, Images: t.Images, Pinned: t.Pinned, Worked: t.Worked, Safe: t.Safe, Changes: t.Changes + 1}
	if p.Digest == t.Pinned.Digest {
		return next
	}
	if update.Planned(t.Tried, p, policy).Kind < update.Restart {
		next.Watch, next.Health, next.Ended = t.Watch, t.Health, t.Ended
	}
	return next.tries(Offer{New: p, Policy: policy})
}

// Started is for the version that runs from now on; limits are those that it must meet.
func (t *Trial) Started(p *manifests.Pod, limits update.Limits, policy string) *Trial {
	switch {
	case !t.IsOn() || p == nil || t.isTried(p):
		return t
	case limits.Within == 0 && p.Digest != t.Pinned.Digest:
		return nil
	}
	return t.started(p, policy)
}

// isTried reports whether p is the version on trial, or was.
func (t *Trial) isTried(p *manifests.Pod) bool {
	return p != nil && t.Tried != nil && t.Tried.Digest == p.Digest
}

// isPinned reports whether p is the former version with the images that it ran.
func (t *Trial) isPinned(p *manifests.Pod) bool {
	return p != nil && t.Pinned != nil && t.Pinned.Digest == p.Digest
}

// begin begins a trial if the health of the version matters: it replaces a running version, and
// something of it starts. changes are those of the previous trial.
func begin(o Offer, changes int) (*manifests.Pod, *Trial) {
	isKnown := o.Given != nil && o.Given.Digest == o.New.Digest
	if isKnown || o.Runs == nil || o.Runs.Digest == o.New.Digest || o.Limits.Within == 0 || !o.starts() {
		return o.New, nil
	}
	t := (&Trial{Former: o.Runs, Worked: o.Worked, Changes: changes + 1}).tries(o)
	return t.until(o), t
}

// Again returns the trial of the offered version from its beginning: its former version, which could
// not be rolled back to, works by now.
func (t *Trial) Again(o Offer) *Trial {
	_, next := begin(o, t.Changes)
	return next
}

// tries returns a trial of the offered version. A rollback of an in-place update changes back only
// what that update changed.
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

// starts reports whether anything starts when the offered version replaces the running one.
func (o *Offer) starts() bool {
	return o.Runs == nil || update.Planned(o.Runs, o.New, o.Policy).Kind >= update.Restart
}

// until returns the version that runs: the tried one once its trial is safe.
func (t *Trial) until(o Offer) *manifests.Pod {
	isAsked := t.Asked != nil && !t.Judged // until that is on disk, the previous choice counts
	switch {
	case (t.Safe || t.Unfit) && !(isAsked && o.Given != nil):
		return o.New
	case o.Given != nil && o.Given.Digest != o.New.Digest:
		return o.Given
	case o.Runs != nil:
		return o.Runs
	}
	return o.New
}

// again is for the version that is already on trial.
func (t *Trial) again(o Offer) (*manifests.Pod, *Trial) {
	next := *t
	next.Tried = o.New
	if t.Reason == "" || !t.Judged {
		return next.until(o), &next
	}
	next.Pinned = of(t.Pinned, o.New.File)
	return next.Pinned, &next
}

// unread is for a former version that was restored and is offered from its checkpoint.
func (t *Trial) unread(o Offer) (*manifests.Pod, *Trial) {
	next := *t
	next.Pinned = of(t.Pinned, o.New.File)
	return next.Pinned, &next
}

// reverted is for a manifest that is again that of the former version: if that version does not run
// on, it is restored with the images that it ran. The tried version is forgotten, and is tried
// again if the manifest gives it again.
func (t *Trial) reverted(o Offer) (*manifests.Pod, *Trial) {
	if t.Pinned == nil || o.Runs != nil && o.Runs.Digest == o.New.Digest && o.Runs.UID == t.Former.UID {
		return o.New, nil
	}
	next := *t
	next.Pinned = of(t.Pinned, o.New.File)
	if t.Tried != nil {
		renewed := *next.Pinned // another object: the report that it replaces another version ends
		next.Tried, next.Reason, next.Asked, next.Output, next.Stuck, next.Pinned = nil, "", nil, "", "", &renewed
		next.Changes++
	}
	return next.Pinned, &next
}

// of returns the version with this file.
func of(p *manifests.Pod, file string) *manifests.Pod {
	if p.File == file {
		return p
	}
	moved := *p
	moved.File = file
	return &moved
}

// IsOn reports whether the tried version may run and is watched.
func (t *Trial) IsOn() bool {
	return t != nil && t.Safe && t.Tried != nil && t.Reason == "" && !t.Unfit
}

// Reserves reports whether the former version may have to start again, so that its room is kept. A
// version that was requested waits for its room like any other.
func (t *Trial) Reserves() bool {
	return t != nil && t.Tried != nil && !t.Unfit && !t.Said && t.Asked == nil
}

// IsBack reports whether p is the former version that replaces its failed successor.
func (t *Trial) IsBack(p *manifests.Pod) bool {
	return t.isRolledBack() && t.isPinned(p)
}

// awaitsVerdict reports whether p is the version on trial, of which it is not decided yet whether it
// works.
func (t *Trial) awaitsVerdict(p *manifests.Pod) bool {
	return t.isTriedSafely(p) && !t.Health.Succeeded && !t.Judged
}

// isTriedSafely reports whether p is on trial, or was found not to work, and there is a version to
// go back to.
func (t *Trial) isTriedSafely(p *manifests.Pod) bool {
	return t != nil && t.isTried(p) && t.Safe && !t.Unfit && t.Asked == nil
}

// isRolledBack reports whether the tried version is to give way, which is recorded.
func (t *Trial) isRolledBack() bool {
	return t != nil && t.Tried != nil && t.Reason != "" && t.Judged
}

// Saw records the health of a running version.
func (t *Trial) Saw(p *manifests.Pod, h update.Health) *Trial {
	if !t.IsOn() || !t.isTried(p) || t.Health == h {
		return t
	}
	next := *t
	next.Health, next.Watch = h, t.Watch.saw(h)
	return &next
}

// Interrupted is for a pod that is stopped, or may have been: what was observed of its version is
// void, and the version gets its whole time once it runs again.
func (t *Trial) Interrupted() *Trial {
	if !t.IsOn() {
		return t
	}
	next := *t
	next.Watch = Watch{looked: t.Watch.looked}
	return &next
}

// Halted is Interrupted for a pod that is halted: there is nothing to observe.
func (t *Trial) Halted() *Trial {
	if !t.IsOn() {
		return t
	}
	next := *t.Interrupted()
	next.Health = update.Health{}
	return &next
}

// fileWithin is how long the agent waits for the disk to take a verdict; after that the verdict
// counts without its record.
const fileWithin = 10 * time.Second

// Look continues the trial, and returns when to look again; zero: once something was observed or
// saved.
func (t *Trial) Look(s Sight) (next *Trial, o Outcome, again time.Time) {
	switch {
	case t.Asked != nil && !t.Judged: // the request counts once it is on disk
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

// awaitDisk lets a verdict count once the disk has not taken it in time.
func (t *Trial) awaitDisk(now time.Time) (next *Trial, o Outcome, again time.Time) {
	until := t.Found.Add(fileWithin)
	if now.Before(until) {
		return t, Watching, until
	}
	judged := *t
	judged.Judged = true
	return &judged, Overdue, time.Time{}
}

// step is how much spent time passes between two saves. If the agent is killed, the version gets
// the unsaved time once more. A trial saves at most ten times for this.
func step(l update.Limits) time.Duration { return max(l.Within/10, 10*time.Second) }

// After returns the trial with the containers that had ended before its version was first observed.
func (t *Trial) After(ended map[string]string) *Trial {
	next := *t
	next.Ended = ended
	return &next
}

// Because adds what is known of the containers to the reason of the rollback.
func (t *Trial) Because(trouble string) *Trial {
	if trouble == "" {
		return t
	}
	next := *t
	next.Reason += ": " + trouble
	return &next
}

// WithSaid returns the trial after the event that the former version is back was recorded.
func (t *Trial) WithSaid() *Trial {
	next := *t
	next.Said = true
	next.Changes++
	return &next
}

// Filed is the result of saving a record.
type Filed struct {
	Err    error
	Trial  *Trial            // the trial that was saved
	Images map[string]string // the images that the former version ran, if they were not known
	Unfit  bool              // the former version ran nothing, or never worked
	Output string            // see Trial, if it was not known
}

// Filed applies the result of a save. What changed meanwhile must be saved again.
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

// pin sets the version that a rollback starts. It keeps the uid of the former version, of which
// nothing is left when it starts: a worker runs one instance at a time.
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

// Record returns the trial as it is saved; boot is the id of the present boot.
func (t *Trial) Record(boot string) *checkpoint.Update {
	u := &checkpoint.Update{Former: t.Former.Pod, File: t.Former.File, Bounded: !t.Former.Unbounded, Images: t.Images, Unchanged: t.Same,
		Reason: t.Reason, Output: t.Output, Asked: t.Asked, Untold: t.Reason != "" && !t.Said, Boot: boot, Spent: t.Watch.Spent}
	if t.Tried != nil {
		u.Tried = t.Tried.Pod
	}
	return u
}

// Recorded returns the trial that a previous agent saved; nil: it cannot be continued. Pods get the
// defaults and digests of this build. If the boot is not that of the record, the watch restarts:
// what a reboot does to a pod is not the fault of its version. last is the version of the pod that
// was started last; nil: none.
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
	t.Said = t.IsBack(last) && !u.Untold
	return t
}

// Line is the report of a version that was rolled back, or whose record cannot be saved.
type Line struct {
	Pod   *manifests.Pod
	Text  string
	Final bool // it was rolled back, and is not tried again
}

// Line returns the report; an empty text: there is none.
func (t *Trial) Line() Line {
	switch {
	case t == nil || t.Tried == nil:
	case t.Stuck != "":
		return Line{Pod: t.Tried, Text: "what it may have to go back to is not on disk: " + t.Stuck}
	case t.Reason != "" && t.Judged && t.Next != nil:
		return Line{Pod: t.Next, Text: t.told()}
	case t.Reason != "" && t.Judged:
		return Line{Pod: t.Tried, Text: t.told(), Final: true}
	}
	return Line{}
}

// Told returns the report for a version that was restored, for one that is to give way to it, as
// while that has to wait, or for one that runs on because the record of the next one's trial cannot
// be saved; "": none of these.
func (t *Trial) Told(p *manifests.Pod) string {
	if t != nil && t.Stuck != "" && !t.Safe && p != nil && p.Digest == t.Former.Digest {
		return "update waits: " + t.Line().Text
	}
	if t.IsBack(p) || t.isRolledBack() && t.isTried(p) {
		return t.told()
	}
	return ""
}

func (t *Trial) told() string {
	version, back := "the former version", "comes back"
	if t.Asked != nil {
		version = fmt.Sprintf("version %s (%s)", id(t.Former), images(t.Former))
	}
	if t.Said {
		back = "is back until the manifest changes"
		if t.Tried.Annotations[annotations.TagImages] != "" {
			back += " or a tag moves"
		}
	}
	return fmt.Sprintf("update rolled back: %s; %s %s", t.what(), version, back)
}

// what returns which version was rolled back, and why.
func (t *Trial) what() string {
	return fmt.Sprintf("version %s (%s): %s", id(t.Tried), images(t.Tried), t.Reason)
}

// Event returns the message of the event about a rollback, of at most limit bytes.
func (t *Trial) Event(limit int) string {
	text := fmt.Sprintf("%s; version %s is back (%s)", t.what(), id(t.Former), images(t.Pinned))
	const says = "; the last output:\n"
	if t.Output != "" && len(text)+len(says) < limit {
		text += says + clip.Tail(t.Output, limit-len(text)-len(says))
	}
	return text
}

// id is the short name of a version for people: the beginning of the hash of its manifest.
func id(p *manifests.Pod) string { return fmt.Sprintf("%.8s", hash(p)) }

// hash returns the hash of a version: of its manifest, and of what the tags mean that it follows. A
// uid that the manifest sets is the same in all versions, so it is none.
func hash(p *manifests.Pod) string {
	of := string(poduid.HashOf(p.Pod))
	if of == string(p.UID) && !poduid.IsComputed(p.UID) {
		of = poduid.Derived(of, p.Digest)
	}
	if refs := p.Annotations[annotations.TagImages]; refs != "" {
		return poduid.Derived(of, refs)
	}
	return of
}

func images(p *manifests.Pod) string { return strings.Join(imagesOf(p), ", ") }

// imagesOf returns the images of the containers and of the volumes; a followed tag with the digest
// that it means.
func imagesOf(p *manifests.Pod) (all []string) {
	refs := annotations.TagImagesOf(p.Pod)
	add := func(name string) {
		if ref := refs[name]; ref != "" {
			name += "@" + ref[strings.LastIndexByte(ref, '@')+1:]
		}
		all = append(all, name)
	}
	for _, c := range p.Spec.Containers {
		add(c.Image)
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			add(v.Image.Reference)
		}
	}
	return all
}
