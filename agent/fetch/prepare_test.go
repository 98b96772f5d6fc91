package fetch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/agent/podspec"
	"monopod/cri/critest"
)

func TestAPodIsPreparedOnceAllItsImagesAreThere(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.runtime.AddImage("img:1")
		r.runtime.OnPull("img:2", time.Minute, nil)
		p := pod("b")
		p.Spec.Containers[1].Image = "img:2"
		lack, next := r.Prepare(t.Context(), p, nil)
		synctest.Wait()
		if lack == nil || lack.Image != "img:1" || lack.Err != nil || !next.IsZero() {
			t.Errorf("at first it lacks %+v until %s", lack, next)
		}
		if lack, _ := r.Prepare(t.Context(), p, nil); lack == nil || lack.Image != "img:2" || lack.Err != nil {
			t.Errorf("then it lacks %+v", lack)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if lack, next := r.Prepare(t.Context(), p, nil); lack != nil || !next.IsZero() {
			t.Errorf("at last it lacks %+v until %s", lack, next)
		}
	})
}

// What failed is said rather than what is still on its way.
func TestAFailureIsSaidBeforeAPull(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.runtime.OnPull("img:1", time.Hour, nil)
		r.runtime.Fault(critest.On("PullImage").Of("img:2").Fail(codes.NotFound, "no such image"))
		p := pod("b")
		p.Spec.Containers[1].Image = "img:2"
		r.Start(t.Context(), p, &p.Spec.Containers[1], nil)
		synctest.Wait()
		if lack, next := r.Prepare(t.Context(), p, nil); lack == nil || lack.Image != "img:2" || lack.Err == nil || next.IsZero() {
			t.Errorf("it lacks %+v until %s", lack, next)
		}
	})
}

// Its failure stays the reason while it is tried again.
func TestAnImageThatFailedIsTriedAgainWhenItIsTime(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.runtime.OnPull("img:1", time.Second, errors.New("no such image"))
		p := pod()
		r.Prepare(t.Context(), p, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		lack, next := r.Prepare(t.Context(), p, nil)
		if lack == nil || lack.Err == nil || !next.After(time.Now()) {
			t.Fatalf("it lacks %+v until %s", lack, next)
		}
		if _, again := r.Prepare(t.Context(), p, nil); !again.Equal(next) || r.runtime.Count("PullImage") != 1 {
			t.Errorf("asked again it is tried at %s, not %s", again, next)
		}
		time.Sleep(time.Until(next))
		r.runtime.OnPull("img:1", time.Second, nil)
		if lack, _ := r.Prepare(t.Context(), p, nil); lack == nil || lack.Err == nil {
			t.Errorf("while it is tried again it lacks %+v", lack)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if lack, _ := r.Prepare(t.Context(), p, nil); lack != nil {
			t.Errorf("at last it lacks %+v", lack)
		}
		if n := r.runtime.Count("PullImage"); n != 2 {
			t.Errorf("%d pulls", n)
		}
	})
}

// To ask again does not put the next try off.
func TestWhenAFetchIsTriedAgainIsSettledOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		p := pod()
		f := &fetch{wanted: podspec.WantedImages(p, &p.Spec.Containers[0]), done: make(chan struct{}), err: errors.New("the runtime is away")}
		close(f.done)
		r.all["a"] = f
		_, next := r.Prepare(t.Context(), p, nil)
		time.Sleep(retryFirst / 2)
		if _, again := r.Prepare(t.Context(), p, nil); !again.Equal(next) || time.Until(next) != retryFirst/2 {
			t.Errorf("it is tried again in %s, and then in %s", time.Until(next), time.Until(again))
		}
	})
}

// A failure that is not the image's waits longer each time, a minute at most.
func TestRetriesOfOtherFailuresBackOff(t *testing.T) {
	now := time.Now()
	for tries, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute, 100: time.Minute} {
		f := &fetch{err: errors.New("the runtime is away"), tries: tries}
		if got := f.nextTry(now).Sub(now); got != want {
			t.Errorf("after %d tries it waits %s, want %s", tries+1, got, want)
		}
	}
}
