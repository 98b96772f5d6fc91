package image

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/cri"
	"monopod/cri/critest"
)

// shelf is one archive, which gives img:1 after a while.
type shelf struct {
	runtime *critest.Runtime
	unknown time.Duration // until it is found that it has the image
	takes   time.Duration
	broken  bool
}

func (s *shelf) Await(_ context.Context, name string) bool {
	if s.unknown > 0 || name != "img:1" {
		return false
	}
	time.Sleep(s.takes)
	if !s.broken {
		s.runtime.AddImage(name)
	}
	return true
}

func (s *shelf) Pending(string) string { return "" }

func (s *shelf) OnFound(_ string, do func()) (stop func()) {
	t := time.AfterFunc(s.unknown, func() { s.unknown = 0; do() })
	return func() { t.Stop() }
}

// withShelf runs a test with a registry that does not answer for an hour.
func withShelf(t *testing.T, test func(t *testing.T, s *shelf, p *Puller)) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{runtime: critest.New(t), takes: time.Minute}
		s.runtime.OnPull("", time.Hour, errors.New("no route to host"))
		p := New(cri.New(s.runtime.Conn()), Config{Archives: s})
		test(t, s, p)
		p.Wait()
	})
}

func TestAnImageOfAnArchiveIsNotPulledFirst(t *testing.T) {
	for _, policy := range []v1.PullPolicy{v1.PullIfNotPresent, v1.PullNever} {
		withShelf(t, func(t *testing.T, s *shelf, p *Puller) {
			img, _, err := p.Local(t.Context(), "img:1", policy, nil)
			if img == nil || err != nil || s.runtime.Count("PullImage") > 0 {
				t.Errorf("%s: %v, %v", policy, img, err)
			}
		})
	}
}

func TestWhatIsPulledForEachStartDoesNotWaitForAnArchive(t *testing.T) {
	withShelf(t, func(t *testing.T, s *shelf, p *Puller) {
		before := time.Now()
		img, _, err := p.Local(t.Context(), "img:1", v1.PullAlways, nil)
		if img != nil || err != nil || time.Since(before) > 0 {
			t.Errorf("%v, %v after %s", img, err, time.Since(before))
		}
	})
}

func TestAPullEndsWhenAnArchiveIsFoundToHaveTheImage(t *testing.T) {
	withShelf(t, func(t *testing.T, s *shelf, p *Puller) {
		s.unknown = 10 * time.Second
		before := time.Now()
		img, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "img:1", Policy: v1.PullIfNotPresent})
		if img == nil || err != nil || time.Since(before) != 70*time.Second {
			t.Errorf("%v, %v after %s", img, err, time.Since(before))
		}
	})
}

func TestAnArchiveThatBreaksLeavesTheImageToTheRegistry(t *testing.T) {
	withShelf(t, func(t *testing.T, s *shelf, p *Puller) {
		s.unknown, s.broken = 10*time.Second, true
		_, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "img:1", Policy: v1.PullIfNotPresent})
		var e *Error
		if !errors.As(err, &e) || e.Reason != ErrImagePull || e.Retry.IsZero() {
			t.Errorf("%v", err)
		}
	})
}

func TestNoBackOffDelaysAnImageThatHasCome(t *testing.T) {
	withShelf(t, func(t *testing.T, s *shelf, p *Puller) {
		s.unknown = 100 * time.Hour
		s.runtime.OnPull("", 0, errors.New("no route to host"))
		for _, name := range []string{"img:1", "other:1"} {
			_, _, _ = p.Pull(t.Context(), Request{Pod: "u", Image: name})
		}
		p.Came([]string{"docker.io/library/img:1"})
		if p.backOffs.pending("u", "img:1") != nil || p.backOffs.pending("u", "other:1") == nil {
			t.Error("a back-off stays, or another goes")
		}
	})
}

func TestImagesOfArchivesStay(t *testing.T) {
	entries := []*Entry{{ID: "a", Archive: "/i/a.tar"}, {ID: "b"}}
	aged, spare := classify(entries, &Disk{Capacity: 100, Available: 1}, Limits{High: 85, Low: 80, MaxAge: time.Hour}, time.Now())
	if len(aged) != 1 || len(spare) != 0 || entries[0].Why != "in archive /i/a.tar" || entries[0].Collect {
		t.Errorf("%v and %v go, as %q", aged, spare, entries[0].Why)
	}
}
