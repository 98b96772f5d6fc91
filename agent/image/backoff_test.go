package image

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"monopod/cri/critest"
)

func TestPullsOfAPodBackOff(t *testing.T) {
	bubble(t, 4, func(t *testing.T, r *critest.Runtime, p *Puller) {
		r.OnPull("img:1", 0, errors.New("no such manifest"))
		ask := func(uid string) *Error {
			_, _, err := p.Pull(t.Context(), Request{Pod: uid, Image: "img:1"})
			var e *Error
			errors.As(err, &e)
			return e
		}
		for k, wait := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
			e := ask("u")
			if e.Reason != ErrImagePull || time.Until(e.Retry) != wait*time.Second || e.Count != k+1 {
				t.Fatalf("failure %d: %s, retry in %s, count %d", k+1, e.Reason, time.Until(e.Retry), e.Count)
			}
			time.Sleep(time.Until(e.Retry) - time.Nanosecond)
			if e := ask("u"); e.Reason != ImagePullBackOff || time.Until(e.Retry) != time.Nanosecond ||
				!strings.HasPrefix(e.Error(), `Back-off pulling image "img:1": ErrImagePull: PullImage img:1: failed to pull`) {
				t.Fatalf("in back-off %d: %s, %v", k+1, e.Reason, e)
			}
			time.Sleep(time.Nanosecond)
		}
		if n := r.Count("PullImage"); n != 7 {
			t.Errorf("%d pulls", n)
		}
		if e := ask("other"); e.Count != 1 {
			t.Errorf("another pod's first failure counts as %d", e.Count)
		}
		if e := ask("u"); e.Count != 8 {
			t.Errorf("the next failure counts as %d", e.Count)
		}
		time.Sleep(10*time.Minute + 1)
		if e := ask("u"); e.Count != 1 {
			t.Errorf("after ten minutes a failure counts as %d", e.Count)
		}
		p.Forget("u")
		if e := ask("u"); e.Reason != ErrImagePull || e.Count != 1 {
			t.Errorf("the failures of a pod that went count: %+v", e)
		}
	})
}

func TestABackOffDoesNotOutlastAClockThatIsSetBack(t *testing.T) {
	bubble(t, 1, func(t *testing.T, _ *critest.Runtime, p *Puller) {
		e := p.backOffs.failed("u", "img:1", &Error{Reason: ErrImagePull, Err: errors.New("no route")})
		e.Retry = e.Retry.Add(24 * time.Hour)
		if _, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "img:1"}); err != nil {
			t.Error(err)
		}
	})
}

func TestAPullThatIsBeingLeftIsNotJoined(t *testing.T) {
	bubble(t, 1, func(t *testing.T, r *critest.Runtime, p *Puller) {
		left := &pull{done: make(chan struct{}), err: context.Canceled}
		p.pulls["img:1"] = left
		var all sync.WaitGroup
		all.Go(func() {
			if _, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "img:1"}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if n := r.Count("PullImage"); n != 0 {
			t.Errorf("%d pulls beside it", n)
		}
		p.mu.Lock()
		delete(p.pulls, "img:1")
		close(left.done)
		p.mu.Unlock()
		all.Wait()
	})
}

func TestReasonsOfTheRuntimeAreKept(t *testing.T) {
	for _, row := range []struct{ said, reason, message string }{
		{"RegistryUnavailable: connection refused", ErrNoRegistry, "image pull failed for img:1 because the registry is unavailable: connection refused"},
		{"SignatureValidationFailed: no key", ErrSignature, "image pull failed for img:1 because the signature validation failed: no key"},
		{"the RegistryUnavailable", ErrImagePull, "PullImage img:1: the RegistryUnavailable"},
	} {
		bubble(t, 1, func(t *testing.T, r *critest.Runtime, p *Puller) {
			r.OnPull("img:1", 0, status.Error(codes.Unknown, row.said))
			_, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "img:1"})
			if reason(err) != row.reason || err.Error() != row.message {
				t.Errorf("%s: %s: %v", row.said, reason(err), err)
			}
		})
	}
}

func TestPullsOverTheLimitWait(t *testing.T) {
	bubble(t, 1, func(t *testing.T, _ *critest.Runtime, _ *Puller) {
		l := newLimit(2, 3)
		start := time.Now()
		for k, want := range []time.Duration{0, 0, 0, 500, 1000} {
			if err := l.wait(t.Context()); err != nil || time.Since(start) != want*time.Millisecond {
				t.Errorf("pull %d begins after %s, %v", k, time.Since(start), err)
			}
		}
		time.Sleep(time.Hour)
		start = time.Now()
		for range 3 {
			_ = l.wait(t.Context())
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("a burst after an hour takes %s", took)
		}
		gone := errors.New("the pod is gone")
		ctx, leave := context.WithCancelCause(t.Context())
		leave(gone)
		if err := l.wait(ctx); !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
	})
}

func TestPullsOfOneImageWithOtherCredentialsFollowEachOther(t *testing.T) {
	bubble(t, 4, func(t *testing.T, r *critest.Runtime, p *Puller) {
		r.Fault(critest.On("PullImage").Delay(time.Minute))
		r.Guard("reg.test/img:1", admitOnly("good"))
		var all sync.WaitGroup
		start := time.Now()
		for _, row := range []struct {
			secret, reason string
		}{{"good", "<nil>"}, {"good", "<nil>"}, {"bad", ErrImagePull}} {
			all.Go(func() {
				_, _, err := p.Pull(t.Context(), Request{Pod: row.secret, Image: "reg.test/img:1", Secrets: secret("reg.test", row.secret)})
				if reason(err) != row.reason {
					t.Errorf("with %s credentials: %v", row.secret, err)
				}
			})
		}
		all.Wait()
		if took, n := time.Since(start), r.Count("PullImage"); took != 2*time.Minute || n != 2 {
			t.Errorf("%d pulls took %s", n, took)
		}
	})
}

func TestProgressOfAPull(t *testing.T) {
	bubble(t, 1, func(t *testing.T, r *critest.Runtime, p *Puller) {
		r.OnPull("", time.Minute, nil)
		start := time.Now()
		var all sync.WaitGroup
		for _, image := range []string{"img:1", "img"} {
			all.Go(func() { _, _, _ = p.Pull(t.Context(), Request{Pod: "u", Image: image}) })
			time.Sleep(time.Second)
		}
		if at, ok := p.Progress("img:1"); !ok || !at.Started.Equal(start) {
			t.Errorf("the first: %v %v", at, ok)
		}
		if at, ok := p.Progress("img"); !ok || !at.Started.IsZero() {
			t.Errorf("one that waits for others: %v %v", at, ok)
		}
		all.Wait()
		if at, ok := p.Progress("img"); ok {
			t.Errorf("one that is there: %v", at)
		}
	})
}
