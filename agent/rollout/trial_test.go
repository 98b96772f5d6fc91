package rollout

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/update"
	"monopod/manifests"
)

// byImage is a version as a manifest gives it, with the digest of its content.
func byImage(image string, labels ...string) *manifests.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n", UID: "u1"},
		Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Image: image}}}}
	for _, l := range labels {
		p.Labels = map[string]string{"v": l}
	}
	return accepted(p, "/m/web.yaml")
}

// byDigest is a version whose image is given by its digest: it comes back to the byte as it is.
func byDigest(image string) *manifests.Pod {
	p := byImage(image)
	p.Spec.Containers[0].ImagePullPolicy = v1.PullIfNotPresent
	return accepted(p.Pod, p.File)
}

var (
	first, second, third = byImage("img:1"), byImage("img:2"), byImage("img:3")
	asked                = update.Limits{Within: 30 * time.Second, Stable: 10 * time.Second}
)

// tale is a trial, with the disk.
type tale struct {
	*testing.T
	trial *Trial
	disk  *checkpoint.Update // nil: there is no record
	now   time.Time
}

func startedTrial(t *testing.T) *tale { return &tale{T: t, now: time.Now()} }

// offers lets a manifest give a version, while another runs and as it was chosen last.
func (s *tale) offers(p, runs *manifests.Pod, change ...func(*Offer)) *manifests.Pod {
	s.Helper()
	o := Offer{New: p, Given: runs, Runs: runs, Limits: asked, Worked: true}
	for _, do := range change {
		do(&o)
	}
	var got *manifests.Pod
	got, s.trial = s.trial.Candidate(o)
	return got
}

// chooses checks which image is chosen.
func (s *tale) chooses(p, runs *manifests.Pod, want string, change ...func(*Offer)) *manifests.Pod {
	s.Helper()
	got := s.offers(p, runs, change...)
	if image := got.Spec.Containers[0].Image; image != want {
		s.Fatalf("%s is chosen, want %s", image, want)
	}
	return got
}

// saves writes the record, or tries to.
func (s *tale) saves(err ...error) {
	s.Helper()
	if s.trial == nil {
		s.disk = nil
		return
	}
	f := Filed{Trial: s.trial}
	if len(err) > 0 {
		f.Err = err[0]
	}
	if s.trial.Pinned == nil {
		f.Images = map[string]string{"c": "sha256:1"}
	}
	if f.Err == nil {
		s.disk = s.trial.Record("a boot")
		if f.Images != nil {
			s.disk.Images = f.Images
		}
	}
	s.trial = s.trial.Filed(f)
}

// restarts lets the next agent read what the disk has. last is the version that is accepted.
func (s *tale) restarts(boot string, last *manifests.Pod) {
	s.Helper()
	if s.trial = nil; s.disk == nil {
		return
	}
	var u checkpoint.Update
	b, err := json.Marshal(s.disk)
	if err == nil {
		err = json.Unmarshal(b, &u)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.trial = Recorded(&u, boot, last)
}

// looks lets a version have this health for a while.
func (s *tale) looks(p *manifests.Pod, h update.Health, d time.Duration) (o Outcome) {
	s.trial = s.trial.Saw(p, h)
	for range 2 {
		if s.trial.IsOn() {
			s.trial, o, _ = s.trial.Look(Sight{Now: s.now, Limits: asked, Lives: itLives})
		}
		s.now = s.now.Add(d)
		d = 0
	}
	return o
}

// starts lets the second version take the place of the first one.
func (s *tale) starts() {
	s.Helper()
	s.chooses(second, first, "img:1") // until that is saved
	s.saves()
	s.chooses(second, first, "img:2")
}

// runs lets another version take the place of the one on trial.
func (s *tale) runs(p *manifests.Pod) { s.trial = s.trial.Started(p, asked, "") }

// fails lets it fail, and be rolled back.
func (s *tale) fails() *manifests.Pod {
	s.Helper()
	s.starts()
	s.looks(second, update.Health{Seen: true}, 30*time.Second)
	s.chooses(second, second, "img:2") // until that is saved
	s.saves()
	return s.chooses(second, second, "sha256:1")
}

func isUnread(o *Offer) { o.Unread = true }
func isUnknown(o *Offer) {
	o.Given, o.Runs = nil, nil
}

func TestAVersionStartsOnceItsRecordIsSaved(t *testing.T) {
	s := startedTrial(t)
	s.chooses(second, first, "img:1")
	s.saves(os.ErrPermission)
	s.chooses(second, first, "img:1")
	if line := s.trial.Line(); !strings.HasPrefix(line.Text, "what it may have to go back to is not on disk: ") || line.Pod != second || line.Final {
		t.Errorf("%+v", line)
	}
	s.saves()
	s.chooses(second, first, "img:2")
	if line := s.trial.Line(); line.Text != "" {
		t.Errorf("%+v", line)
	}
}

// The bad version must not run on for a disk that does not take why it goes.
func TestAVerdictCountsThoughTheDiskDoesNotTakeIt(t *testing.T) {
	for name, goesOn := range map[string]func(*tale){
		"refused": func(s *tale) { s.saves(os.ErrPermission) },
		"not in time": func(s *tale) {
			s.trial, _, _ = s.trial.Look(Sight{Now: s.now.Add(fileWithin), Limits: asked, Lives: itLives})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startedTrial(t)
			s.starts()
			s.looks(second, update.Health{Seen: true}, 30*time.Second)
			goesOn(s)
			back := s.chooses(second, second, "sha256:1")
			if !s.trial.IsBack(back) || !s.trial.Line().Final {
				t.Errorf("%+v", s.trial.Line())
			}
			s.saves()
			s.restarts("a boot", nil)
			s.chooses(second, nil, "sha256:1", isUnknown)
		})
	}
}

func TestWhatIsRolledBackSurvivesTheAgent(t *testing.T) {
	s := startedTrial(t)
	s.fails()
	for _, boot := range []string{"a boot", "another"} {
		s.restarts(boot, nil)
		p := s.chooses(second, nil, "sha256:1", isUnknown)
		if p.UID != first.UID || s.trial.Told(p) == "" || !s.trial.Line().Final || s.trial.Pinned == nil {
			t.Errorf("uid %s, told %q, %+v", p.UID, s.trial.Told(p), s.trial.Line())
		}
		s.chooses(p, p, "sha256:1") // from its checkpoint, while the file cannot be read
		if !s.trial.IsBack(p) {
			t.Errorf("nothing is known of its trial any more: %+v", s.trial)
		}
		s.chooses(second, p, "sha256:1")
	}
}

// Images by digest, as many fleets have them: the version that comes back is the former one to
// the byte. The folder cannot be read when the next agent starts, which offers that version from
// its checkpoint.
func TestWhatIsRolledBackSurvivesAnAgentThatCannotReadItsManifest(t *testing.T) {
	s, former := startedTrial(t), byDigest("sha256:1")
	s.chooses(second, former, "sha256:1")
	s.saves()
	s.chooses(second, former, "img:2")
	s.looks(second, update.Health{Seen: true}, 30*time.Second)
	s.saves()
	back := s.chooses(second, second, "sha256:1")
	if back.Digest != former.Digest {
		t.Fatalf("%.8s is back, not %.8s", back.Digest, former.Digest)
	}
	s.restarts("another boot", back)
	s.chooses(back, back, "sha256:1", isUnread)
	s.saves()
	s.chooses(second, back, "sha256:1") // the folder is back
	s.chooses(back, back, "sha256:1")   // its manifest is put back
	s.saves()
	s.chooses(second, back, "sha256:1") // until that is saved
	s.saves()
	s.chooses(second, back, "img:2") // by hand, once more
}

func TestTheTimeThatIsLeftSurvivesTheAgent(t *testing.T) {
	for boot, want := range map[string]Outcome{"a boot": RollBack, "another": Watching} {
		s := startedTrial(t)
		s.starts()
		s.looks(second, update.Health{Seen: true}, 20*time.Second)
		s.saves()
		s.restarts(boot, nil)
		s.chooses(second, second, "img:2")
		if got := s.looks(second, update.Health{Seen: true}, 10*time.Second); got != want {
			t.Errorf("in %s: %v", boot, got)
		}
	}
}

// For how long a version was not ready is saved now and then, not each time that it is looked at.
func TestProgressIsSavedAFewTimesATrial(t *testing.T) {
	s := startedTrial(t)
	s.starts()
	before := s.trial.Changes
	for range 29 {
		s.looks(second, update.Health{Seen: true}, time.Second)
	}
	if n := s.trial.Changes - before; n != 2 {
		t.Errorf("%d times in 29 s", n)
	}
}

func TestTheFormerVersionIsTheLastThatWasNotInDoubt(t *testing.T) {
	s := startedTrial(t)
	s.starts()
	s.looks(second, update.Health{Seen: true}, time.Second)
	before := s.trial.Changes
	s.chooses(third, second, "img:3") // the disk has what it takes to go back
	s.runs(third)
	if s.trial.Changes <= before {
		t.Errorf("%d changes, %d before", s.trial.Changes, before)
	}
	s.looks(third, update.Health{Seen: true}, 30*time.Second)
	s.saves()
	s.chooses(third, third, "sha256:1")
}

// A label of a version on trial starts nothing: what runs goes on to show what it does.
func TestATrialGoesOnOverAnEditThatStartsNothing(t *testing.T) {
	s, labelled := startedTrial(t), byImage("img:2", "two")
	s.starts()
	s.looks(second, update.Health{Seen: true}, 20*time.Second)
	before := s.trial.Changes
	s.chooses(labelled, second, "img:2")
	s.runs(labelled)
	if s.trial.Changes <= before {
		t.Errorf("%d changes, %d before", s.trial.Changes, before)
	}
	if got := s.looks(labelled, update.Health{Seen: true}, 10*time.Second); got != RollBack {
		t.Errorf("%v", got)
	}
	s.saves()
	s.chooses(labelled, labelled, "sha256:1")
}

// Another version may have to wait. What runs meanwhile goes on to show what it does: the former
// version comes back, whether the manifest gives that or a third one, and the third one follows it.
func TestATrialGoesOnWhileAnotherVersionWaits(t *testing.T) {
	bad := update.Health{Seen: true}
	for _, given := range []*manifests.Pod{first, third} {
		for _, isKilled := range []bool{false, true} {
			s, want := startedTrial(t), map[bool]string{true: "img:3", false: "sha256:1"}[given == third]
			s.starts()
			s.looks(second, bad, 20*time.Second)
			s.chooses(given, second, want)
			if got := s.looks(second, bad, 10*time.Second); got != RollBack {
				t.Fatalf("%s waits: %v", want, got)
			}
			s.chooses(given, second, want, func(o *Offer) { o.Given = given }) // until that is saved
			s.saves()
			var back *manifests.Pod
			if isKilled {
				s.restarts("a boot", second)
				back = s.chooses(given, second, "sha256:1", func(o *Offer) { o.Given = nil })
			} else {
				back = s.chooses(given, second, "sha256:1", func(o *Offer) { o.Given = given })
			}
			if line := s.trial.Line(); !s.trial.IsBack(back) || line.Pod != given || line.Final {
				t.Errorf("%s waits: %+v", want, line)
			}
			s.chooses(given, second, "sha256:1", func(o *Offer) { o.Given = back }) // the next snapshot
			s.chooses(given, back, want)
			if line := s.trial.Line(); line.Text != "" {
				t.Errorf("%s: %+v", want, line)
			}
		}
	}
}

// An agent that dies before the record says which version is on trial leaves it there.
func TestAVersionThatStartedBesideAnotherStaysOnTrial(t *testing.T) {
	s := startedTrial(t)
	s.starts()
	s.saves()
	s.chooses(third, second, "img:3")
	s.restarts("a boot", third)
	s.chooses(third, third, "img:3", func(o *Offer) { o.Given = nil })
	if !s.trial.IsOn() || s.trial.Tried != third {
		t.Errorf("%+v", s.trial)
	}
	s.runs(first)
	if s.trial != nil && s.trial.Tried != first {
		t.Errorf("%+v", s.trial)
	}
}

// A version that waited, beside one that works now, starts once the record of its trial is saved, though
// it was offered all the time.
func TestAVersionThatWaitedStartsOnceItsRecordIsSaved(t *testing.T) {
	s := &tale{T: t, now: time.Now()}
	s.chooses(third, second, "img:2", func(o *Offer) { o.Given = second })
	offered := func(o *Offer) { o.Given = third }
	s.chooses(third, second, "img:2", offered)
	s.saves()
	s.chooses(third, second, "img:3", offered)
}

func TestWhatStartsNothingIsNotOnTrial(t *testing.T) {
	s := startedTrial(t)
	if s.chooses(byImage("img:1", "two"), first, "img:1"); s.trial != nil {
		t.Errorf("%+v", s.trial)
	}
	if s.chooses(byImage("img:1", "two"), first, "img:1", func(o *Offer) { o.Policy = update.PolicyReplace }); s.trial == nil {
		t.Error("a pod that is replaced for it is not on trial")
	}
}

// Other content of a version that gave way is tried, though what still runs would become that in place.
func TestAnEditOfAVersionThatGaveWayIsTried(t *testing.T) {
	s := startedTrial(t)
	s.fails()
	s.chooses(byImage("img:2", "two"), second, "img:2")
	if !s.trial.IsOn() {
		t.Errorf("%+v", s.trial)
	}
}

func TestAHealthyVersionLeavesNoRecord(t *testing.T) {
	s := startedTrial(t)
	s.starts()
	if got := s.looks(second, update.Health{Seen: true, Ready: true}, 10*time.Second); got != Healthy || s.trial != nil {
		t.Errorf("%v, %+v", got, s.trial)
	}
}

func TestTheFormerManifestKeepsWhatIsBack(t *testing.T) {
	s := startedTrial(t)
	p := s.chooses(first, s.fails(), "sha256:1")
	s.saves()
	if s.trial.Told(p) != "" || s.trial.Line().Text != "" {
		t.Errorf("it is told that %q", s.trial.Told(p))
	}
	s.restarts("a boot", p)
	s.chooses(first, nil, "sha256:1", isUnknown)
	s.chooses(second, p, "img:2") // it is tried again
}

func TestAVersionThatStillRunsIsNotStoppedForItsImages(t *testing.T) {
	s := startedTrial(t)
	s.starts() // and waits for its images
	if got := s.chooses(first, first, "img:1"); got != first || s.trial != nil {
		t.Error("it is not the one that runs")
	}
}

func TestAVersionWithNothingToGoBackToIsNotOnTrial(t *testing.T) {
	s := startedTrial(t)
	if s.chooses(second, nil, "img:2"); s.trial != nil {
		t.Error("a new pod is on trial")
	}
	s.chooses(second, first, "img:1")
	s.trial = s.trial.Filed(Filed{Trial: s.trial, Unfit: true})
	s.chooses(second, first, "img:2")
	if s.looks(second, update.Health{Seen: true}, time.Hour); s.trial.Reason != "" || s.trial.Reserves() {
		t.Errorf("%+v", s.trial)
	}
	if s.chooses(third, second, "img:2"); s.trial.Former != second {
		t.Errorf("%+v", s.trial)
	}
}

// What works only after its successor was offered is one to go back to all the same.
func TestAFormerVersionMayBeFitByNow(t *testing.T) {
	long := update.Limits{Within: time.Minute, Stable: 10 * time.Second}
	ready := update.Health{Seen: true, Ready: true}
	now := time.Unix(1000, 0)
	for name, row := range map[string]struct {
		trial    Trial
		proof    Proof
		prepared bool
		want     Outcome
	}{
		"it works":                              {Trial{Unfit: true}, Proof{}.Saw(first, ready, now, long.Stable), true, Fit},
		"it does not work":                      {Trial{Unfit: true}, Proof{}.Saw(first, update.Health{Seen: true}, now, long.Stable), true, Watching},
		"another version works":                 {Trial{Unfit: true}, Proof{}.Saw(third, ready, now, long.Stable), true, Watching},
		"its successor is not prepared yet":     {Trial{Unfit: true}, Proof{}.Saw(first, ready, now, long.Stable), false, Watching},
		"it worked, and its images are unknown": {Trial{Unfit: true, Worked: true}, Proof{}.Saw(first, ready, now, long.Stable), true, Watching},
		"it could be gone back to before":       {Trial{Safe: true}, Proof{}.Saw(first, ready, now, long.Stable), true, Watching},
	} {
		row.trial.Former, row.trial.Tried = first, second
		r := Record{Offered: second, Accepted: first, Trial: &row.trial, Proof: row.proof, Works: true, Now: Decision{Run: first, Prepare: second}}
		r.Prepared.Of, r.Prepared.Ready = second, row.prepared
		w := World{Limits: func(*manifests.Pod) update.Limits { return long }}
		w.Now.Wall = now.Add(time.Second)
		if got := (Decision{Run: first}).goesOn(&r, &w).Outcome; got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
	unfit := &Trial{Former: first, Tried: second, Unfit: true, Changes: 3}
	next := unfit.Again(Offer{New: second, Given: first, Runs: first, Limits: long, Worked: true})
	if next == nil || next.Unfit || !next.Worked || next.Changes <= unfit.Changes {
		t.Errorf("%+v", next)
	}
}

// A trial that ended while its record was being saved says nothing of the one after.
func TestARecordOfAnotherTrialSaysNothing(t *testing.T) {
	s := startedTrial(t)
	s.chooses(second, first, "img:1")
	former := s.trial
	s.trial = nil
	s.chooses(third, second, "img:2")
	if now := s.trial.Filed(Filed{Trial: former, Images: map[string]string{"c": "sha256:1"}}); now != s.trial {
		t.Errorf("%+v", now)
	}
}

// The disk does not take that a version gives way, and the manifest changes meanwhile: what is
// said is about the version that there is to speak of, or nothing.
func TestNothingIsSaidOfAVersionThatIsNotTriedAnyMore(t *testing.T) {
	for name, next := range map[string]*manifests.Pod{"the former one again": first, "another one": third} {
		s := startedTrial(t)
		s.starts()
		s.looks(second, update.Health{Seen: true}, 30*time.Second)
		s.saves(os.ErrPermission)
		if line := s.trial.Line(); line.Pod != second {
			t.Fatalf("%s: %+v", name, line)
		}
		s.offers(next, second)
		if line := s.trial.Line(); line.Text != "" {
			t.Errorf("%s: %+v", name, line)
		}
	}
}

// It is said to be back only once it is.
func TestTheFormerVersionIsSaidToBeBackOnceItRuns(t *testing.T) {
	s := startedTrial(t)
	p := s.fails()
	if told := s.trial.Told(p); !strings.HasSuffix(told, "; the former version comes back") || !s.trial.Reserves() {
		t.Errorf("%q", told)
	}
	s.restarts("a boot", p)
	if s.trial.Said {
		t.Error("the next agent does not say it, though nothing was said yet")
	}
	s.trial = s.trial.WithSaid()
	s.saves()
	if told := s.trial.Told(p); !strings.HasSuffix(told, "; the former version is back until the manifest changes") || s.trial.Reserves() {
		t.Errorf("%q", told)
	}
	if s.restarts("a boot", p); !s.trial.Said {
		t.Error("the next agent says it again")
	}
	if s.restarts("a boot", second); s.trial.Said {
		t.Error("the next agent does not say it")
	}
}

// A former version whose files an older agent did not bound comes back with them, also after
// a restart of the agent.
func TestAVersionThatComesBackIsBoundedAsItWas(t *testing.T) {
	for _, unbounded := range []bool{false, true} {
		s, former := startedTrial(t), *first
		former.Unbounded = unbounded
		s.chooses(second, &former, "img:1")
		s.saves()
		s.chooses(second, &former, "img:2")
		s.looks(second, update.Health{Seen: true}, 30*time.Second)
		s.saves()
		if back := s.chooses(second, second, "sha256:1"); back.Unbounded != unbounded {
			t.Errorf("it is unbounded: %v, want %v", back.Unbounded, unbounded)
		}
		s.restarts("a boot", nil)
		if back := s.chooses(second, second, "sha256:1"); back.Unbounded != unbounded {
			t.Errorf("after a restart it is unbounded: %v, want %v", back.Unbounded, unbounded)
		}
	}
}

// Two trials after one another are told apart by their changes: what was saved of the one is not
// taken for the other.
func TestATrialAfterOneWithNothingToGoBackToIsAnotherOne(t *testing.T) {
	unfit := &Trial{Former: first, Tried: second, Unfit: true, Changes: 1}
	_, next := unfit.Candidate(Offer{New: third, Given: second, Runs: first, Limits: update.Limits{Within: time.Minute}})
	if next == nil || next.Unfit || next.Changes <= unfit.Changes {
		t.Errorf("%+v", next)
	}
}

// Until the record of a trial is on disk, what runs goes on, whatever the manifest gives meanwhile.
func TestWhatRunsUntilTheRecordIsSaved(t *testing.T) {
	s := startedTrial(t)
	s.chooses(second, first, "img:1")
	s.chooses(third, first, "img:1")
	s.saves()
	s.chooses(third, first, "img:3")

	for _, row := range []struct {
		name        string
		given, runs *manifests.Pod
		want        *manifests.Pod
	}{
		{"the version that was chosen", second, first, second},
		{"the version that runs, if none was chosen since the agent started", nil, first, first},
		{"the new one, if none runs", nil, nil, third},
	} {
		got := (&Trial{Former: first, Tried: third}).until(Offer{New: third, Given: row.given, Runs: row.runs})
		if got != row.want {
			t.Errorf("%s: %s", row.name, got.Spec.Containers[0].Image)
		}
	}
}

// A version that is offered from its checkpoint, as its manifest is not known, ends no trial.
func TestAManifestThatIsNotReadEndsNoTrial(t *testing.T) {
	s := startedTrial(t)
	s.chooses(second, first, "img:1")
	before := s.trial
	s.chooses(first, first, "img:1", isUnread)
	if s.trial != before {
		t.Errorf("%+v", s.trial)
	}
	s.chooses(first, first, "img:1")
	if s.trial != nil {
		t.Errorf("once it is read: %+v", s.trial)
	}
}

// A version that was restored runs on when its manifest, which was put back, cannot be read any more.
func TestAManifestThatIsNotReadLeavesTheRestoredVersion(t *testing.T) {
	s := startedTrial(t)
	back := s.fails()
	s.saves()
	back = s.chooses(first, back, "sha256:1")
	given := func(o *Offer) { o.Given = back }
	s.chooses(first, back, "sha256:1", given, isUnread)
	s.chooses(first, nil, "sha256:1", given, isUnread) // it has ended
}

// What a version came to is another state than the one before: what is saved of that is not taken for it.
func TestEachStepOfATrialIsAChange(t *testing.T) {
	s := startedTrial(t)
	s.starts()
	before := s.trial.Changes
	s.looks(second, update.Health{Seen: true}, 9*time.Second) // less than is saved
	s.looks(second, update.Health{Seen: true, Failed: true}, time.Second)
	if s.trial.Reason == "" || s.trial.Changes <= before {
		t.Errorf("%q: %d changes, %d before", s.trial.Reason, s.trial.Changes, before)
	}
	s.saves()
	p := s.chooses(second, second, "sha256:1")
	before = s.trial.Changes
	s.chooses(first, p, "sha256:1")
	if s.trial.Tried != nil || s.trial.Changes <= before {
		t.Errorf("%+v, %d changes before", s.trial, before)
	}
}

// A manifest that moves takes the version along that came back in its place.
func TestWhatIsBackIsOfTheFileOfItsManifest(t *testing.T) {
	s := startedTrial(t)
	p := s.fails()
	if again := s.chooses(second, p, "sha256:1"); again != p {
		t.Error("it is another object, though nothing has changed")
	}
	moved := *second
	moved.File = "/m/moved.yaml"
	if again := s.chooses(&moved, p, "sha256:1"); again.File != moved.File || p.File == moved.File {
		t.Errorf("it is of %s, was of %s", again.File, p.File)
	}
}

// What comes back changes what the tried version has changed: in place nothing else.
func TestATrialInPlaceNamesWhatStaysAsItIs(t *testing.T) {
	for policy, want := range map[string]int{"": 1, update.PolicyReplace: 0} {
		if next := (&Trial{Former: first}).tries(Offer{New: byImage("img:1", "two"), Policy: policy}); len(next.Same) != want {
			t.Errorf("policy %q: %v", policy, next.Same)
		}
	}
}

func TestTheOutputOfAVersionThatGaveWayIsKept(t *testing.T) {
	for _, row := range []struct {
		name, reason, was, want string
	}{
		{"it gives way", "it failed", "", "c: no such file"},
		{"its output is known already", "it failed", "c: no such device", "c: no such device"},
		{"it does not give way", "", "", ""},
	} {
		is := &Trial{Former: first, Pinned: first, Tried: second, Safe: true, Reason: row.reason, Output: row.was}
		if got := is.Filed(Filed{Trial: is, Output: "c: no such file"}).Output; got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestWhyAVersionGivesWay(t *testing.T) {
	is := &Trial{Former: first, Tried: second, Reason: "it failed"}
	if got := is.Because(""); got != is {
		t.Errorf("nothing is known of its containers: %q", got.Reason)
	}
	if got := is.Because("container c waits: ErrImagePull"); got.Reason != "it failed: container c waits: ErrImagePull" || is.Reason != "it failed" {
		t.Errorf("%q, before %q", got.Reason, is.Reason)
	}
}

// The version that runs says why the next one waits.
func TestWhatIsToldOfTheVersionThatRuns(t *testing.T) {
	const stuck = "no space left"
	for _, row := range []struct {
		name  string
		trial *Trial
		of    *manifests.Pod
		want  string
	}{
		{"the record of its trial is not saved", &Trial{Former: first, Tried: second, Stuck: stuck}, first, "update waits: what it may have to go back to is not on disk: " + stuck},
		{"of the one that waits it is told elsewhere", &Trial{Former: first, Tried: second, Stuck: stuck}, second, ""},
		{"the record of its trial is saved", &Trial{Former: first, Tried: second}, first, ""},
		{"a later record of it is not", &Trial{Former: first, Tried: second, Stuck: stuck, Safe: true}, first, ""},
		{"it is to give way, and the former one has to wait", &Trial{Former: first, Tried: second, Reason: "it failed", Judged: true}, second,
			"update rolled back: version " + id(second) + " (img:2): it failed; the former version comes back"},
		{"that it gives way is not on disk", &Trial{Former: first, Tried: second, Reason: "it failed"}, second, ""},
		{"another one gives way", &Trial{Former: first, Tried: second, Reason: "it failed", Judged: true}, third, ""},
		{"there is no trial", nil, first, ""},
		{"nothing runs", &Trial{Former: first, Tried: second, Stuck: stuck}, nil, ""},
	} {
		if got := row.trial.Told(row.of); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// The event of a version that gave way has of its output what there is room for.
func TestTheEventOfAVersionThatGaveWay(t *testing.T) {
	is := &Trial{Former: first, Pinned: first, Tried: second, Reason: "it failed"}
	bare := is.Event(1000)
	if bare != "version "+id(second)+" (img:2): it failed; version "+id(first)+" is back (img:1)" {
		t.Errorf("without output: %q", bare)
	}
	is.Output = "one\ntwo"
	const says = "; the last output:\n"
	for _, row := range []struct {
		name  string
		limit int
		want  string
	}{
		{"all of it", 1000, bare + says + "one\ntwo"},
		{"just all of it", len(bare) + len(says) + 7, bare + says + "one\ntwo"},
		{"the end of it", len(bare) + len(says) + 3, bare + says + "two"},
		{"its last letter", len(bare) + len(says) + 1, bare + says + "o"},
		{"no room for it", len(bare) + len(says), bare},
		{"no room for what comes before it", len(bare), bare},
	} {
		if got := is.Event(row.limit); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
