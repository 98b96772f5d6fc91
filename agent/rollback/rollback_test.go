package rollback

import (
	"log/slog"
	"os"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/update"
	"monopod/manifests"
)

func version(image string) *manifests.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n", UID: "u1"},
		Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Image: image}}}}
	return accepted(p, "/m/web.yaml")
}

var (
	first, second, third = version("img:1"), version("img:2"), version("img:3")
	web                  = first.Key()
)

// shelf is a book with its root dir.
type shelf struct {
	*testing.T
	*Book
	root *checkpoint.Root
	now  time.Time
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{T: t, root: &checkpoint.Root{Dir: t.TempDir()}, now: time.Now()}
	s.open("a boot")
	return s
}

// open reads the book as the next agent does.
func (s *shelf) open(boot string) {
	s.Book = New(boot, s.root.Updates(slog.New(slog.DiscardHandler)))
	s.Limits = func(*v1.Pod) update.Limits { return update.Limits{Within: 30 * time.Second, Stable: 10 * time.Second} }
}

// save writes what is to be saved, and returns what was rolled back with that.
func (s *shelf) save() []Back {
	all := s.Start()
	for _, one := range all {
		one.Do(s.root, func() *v1.Pod {
			p := first.DeepCopy()
			p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", ImageID: "sha256:1"}}
			return p
		})
	}
	back, _ := s.Done(all)
	return back
}

// chooses checks which image is chosen for a version while another runs.
func (s *shelf) chooses(p, runs *manifests.Pod, want string) *manifests.Pod {
	s.Helper()
	got := s.Choose(Pods{New: p, Given: runs, Runs: runs, Held: func(*manifests.Pod) bool { return false }})
	if image := got.Spec.Containers[0].Image; image != want {
		s.Fatalf("%s is chosen, want %s", image, want)
	}
	return got
}

// looks lets a version have this health for a while.
func (s *shelf) looks(p *manifests.Pod, h update.Health, d time.Duration) (healthy int) {
	s.Saw(p, h)
	healthy = len(s.Look(s.now, true, func(manifests.Key) string { return "" }))
	s.now = s.now.Add(d)
	return healthy + len(s.Look(s.now, true, func(manifests.Key) string { return "" }))
}

// rollBack lets the second version fail.
func (s *shelf) rollBack() {
	s.Helper()
	s.chooses(second, first, "img:1")
	s.save()
	s.chooses(second, first, "img:2")
	s.looks(second, update.Health{Seen: true}, 30*time.Second)
	s.chooses(second, second, "img:2") // until that is saved
	if back := s.save(); len(back) != 1 || back[0].Tried != second {
		s.Fatalf("%+v is rolled back", back)
	}
	s.chooses(second, second, "sha256:1")
}

func TestAVersionStartsOnceItsRecordIsSaved(t *testing.T) {
	s := newShelf(t)
	s.chooses(second, first, "img:1")
	all := s.Start()
	if len(all) != 1 || s.Start() != nil {
		t.Fatalf("%d records are saved at a time", len(all))
	}
	all[0].Err = os.ErrPermission
	if _, changed := s.Done(all); changed || len(s.Lines()) != 1 {
		t.Error("a record that is not saved changes something, or nothing says so")
	}
	s.chooses(second, first, "img:1")
	if len(s.Start()) > 0 {
		t.Error("it is tried again at once")
	}
	s.Tick()
	s.save()
	s.chooses(second, first, "img:2")
	if len(s.Lines()) > 0 {
		t.Errorf("%+v", s.Lines())
	}
}

func TestWhatIsRolledBackSurvivesTheAgent(t *testing.T) {
	s := newShelf(t)
	s.rollBack()
	for _, boot := range []string{"a boot", "another"} {
		s.open(boot)
		p := s.chooses(second, nil, "sha256:1")
		if p.UID != first.UID || s.Told(p) == "" || len(s.Lines()) != 1 || len(s.Formers()) != 1 {
			t.Errorf("uid %s, told %q, %+v", p.UID, s.Told(p), s.Lines())
		}
		s.chooses(p, p, "sha256:1") // from its checkpoint, while the file cannot be read
		s.chooses(second, p, "sha256:1")
	}
}

func TestTheTimeThatIsLeftSurvivesTheAgent(t *testing.T) {
	for boot, want := range map[string]int{"a boot": 1, "another": 0} {
		s := newShelf(t)
		s.chooses(second, first, "img:1")
		s.save()
		s.chooses(second, first, "img:2")
		s.looks(second, update.Health{Seen: true}, 20*time.Second)
		s.Tick()
		s.save()
		s.open(boot)
		s.chooses(second, second, "img:2")
		s.looks(second, update.Health{Seen: true}, 10*time.Second)
		if back := s.save(); len(back) != want {
			t.Errorf("in %s: %+v", boot, back)
		}
	}
}

func TestTheFormerVersionIsTheLastThatWasNotInDoubt(t *testing.T) {
	s := newShelf(t)
	s.chooses(second, first, "img:1")
	s.save()
	s.chooses(second, first, "img:2")
	s.looks(second, update.Health{Seen: true}, time.Second)
	s.chooses(third, second, "img:2")
	s.save()
	s.chooses(third, second, "img:3")
	s.looks(third, update.Health{Seen: true}, 30*time.Second)
	s.save()
	s.chooses(third, third, "sha256:1")
}

func TestAHealthyVersionLeavesNoRecord(t *testing.T) {
	s := newShelf(t)
	s.chooses(second, first, "img:1")
	s.save()
	s.chooses(second, first, "img:2")
	if n := s.looks(second, update.Health{Seen: true, Ready: true}, 10*time.Second); n != 1 {
		t.Errorf("%d are healthy", n)
	}
	s.save()
	if s.open("a boot"); len(s.all) > 0 || len(s.Formers()) > 0 {
		t.Errorf("%+v", s.all)
	}
}

func TestTheFormerManifestKeepsWhatIsBack(t *testing.T) {
	s := newShelf(t)
	s.rollBack()
	p := s.chooses(first, s.chooses(second, second, "sha256:1"), "sha256:1")
	s.save()
	if s.Told(p) != "" || len(s.Lines()) > 0 {
		t.Errorf("it is told that %q", s.Told(p))
	}
	s.open("a boot")
	s.chooses(first, nil, "sha256:1")
	s.chooses(second, p, "sha256:1") // until that is saved
	s.save()
	s.chooses(second, p, "img:2") // it is tried again
}

func TestAVersionThatStillRunsIsNotStoppedForItsImages(t *testing.T) {
	s := newShelf(t)
	s.chooses(second, first, "img:1")
	s.save()
	s.chooses(second, first, "img:2") // and waits for its images
	if got := s.chooses(first, first, "img:1"); got != first || len(s.all) > 0 {
		t.Error("it is not the one that runs")
	}
}

func TestAVersionWithNothingToGoBackToIsNotWatched(t *testing.T) {
	s := newShelf(t)
	s.chooses(second, nil, "img:2")
	if len(s.Start()) > 0 {
		t.Error("a new pod has a record")
	}
	other := version("img:1")
	other.UID = "another" // of which nothing was reported
	s.chooses(second, other, "img:1")
	s.save()
	s.chooses(second, other, "img:2")
	s.looks(second, update.Health{Seen: true}, time.Hour)
	if back := s.save(); len(back) > 0 || len(s.root.Updates(slog.New(slog.DiscardHandler))) > 0 {
		t.Errorf("%+v", back)
	}
}

func TestARemovedPodHasNoRecord(t *testing.T) {
	s := newShelf(t)
	s.rollBack()
	s.Forget(func(key manifests.Key) bool { return key != web })
	s.save()
	if all := s.root.Updates(slog.New(slog.DiscardHandler)); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

// The disk does not take that a version is rolled back, and the manifest changes meanwhile:
// what is said is about the version that there is to speak of, or nothing.
func TestNothingIsSaidOfAVersionThatIsNotTriedAnyMore(t *testing.T) {
	for name, next := range map[string]*manifests.Pod{"the former one again": first, "another one": third} {
		s := newShelf(t)
		s.chooses(second, first, "img:1")
		s.save()
		s.chooses(second, first, "img:2")
		s.looks(second, update.Health{Seen: true}, 30*time.Second)
		refused := s.Start()
		refused[0].Err = os.ErrPermission
		s.Done(refused)
		if lines := s.Lines(); len(lines) != 1 || lines[0].Pod != second {
			t.Fatalf("%s: of what is not saved is said %+v", name, lines)
		}
		s.Choose(Pods{New: next, Given: second, Runs: second, Held: func(*manifests.Pod) bool { return false }})
		if lines := s.Lines(); len(lines) != 0 {
			t.Errorf("%s: %+v", name, lines)
		}
	}
}

// A former version whose files an older agent did not bound comes back with them, also after
// a restart of the agent.
func TestAVersionThatComesBackIsBoundedAsItWas(t *testing.T) {
	for _, unbounded := range []bool{false, true} {
		s := newShelf(t)
		former := *first
		former.Unbounded = unbounded
		s.chooses(second, &former, "img:1")
		s.save()
		s.chooses(second, &former, "img:2")
		s.looks(second, update.Health{Seen: true}, 30*time.Second)
		s.chooses(second, second, "img:2") // until that is saved
		s.save()
		if back := s.chooses(second, second, "sha256:1"); back.Unbounded != unbounded {
			t.Errorf("it is unbounded: %v, want %v", back.Unbounded, unbounded)
		}
		s.open("a boot")
		if back := s.chooses(second, second, "sha256:1"); back.Unbounded != unbounded {
			t.Errorf("after a restart it is unbounded: %v, want %v", back.Unbounded, unbounded)
		}
	}
}
