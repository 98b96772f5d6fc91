package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"monopod/cri"
	"monopod/cri/critest"
)

func bubble(t *testing.T, parallel int, test func(*testing.T, *critest.Runtime, *Puller)) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		test(t, r, New(cri.New(r.Conn()), Config{Parallel: parallel}))
	})
}

func reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return fmt.Sprint(err)
}

// The words are of the image and of what is wrong, whether a try has just failed or is waited for.
func TestTheWordsOfAnImageThatCannotBeHad(t *testing.T) {
	failed := &Error{Reason: ErrImagePull, Image: "docker.example/x:1", Err: errors.New("connection refused")}
	for _, row := range []struct {
		err  *Error
		want string
	}{
		{failed, "image docker.example/x:1 cannot be pulled: connection refused"},
		{failed.BackOff(), "image docker.example/x:1 cannot be pulled: connection refused"},
		{&Error{Reason: ErrNoRegistry, Image: "x", Err: errors.New("gone")}, "image x cannot be pulled: gone"},
		{&Error{Reason: ErrNeverPull, Image: "x", Err: errors.New("it is not present")}, "image x: ErrImageNeverPull: it is not present"},
	} {
		if got := row.err.Words(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

func TestPresent(t *testing.T) {
	for _, row := range []struct {
		name, image string
		policy      v1.PullPolicy
		there       bool
		want        string // reason
	}{
		{"there, if not present", "img:1", v1.PullIfNotPresent, true, "<nil>"},
		{"there, never", "img:1", v1.PullNever, true, "<nil>"},
		{"there, always: to be pulled", "img:1", v1.PullAlways, false, "<nil>"},
		{"missing, if not present: to be pulled", "img:2", v1.PullIfNotPresent, false, "<nil>"},
		{"missing, never", "img:2", v1.PullNever, false, ErrNeverPull},
		{"no tag means latest", "late", v1.PullIfNotPresent, true, "<nil>"},
		{"no reference", "Not A Reference", v1.PullAlways, false, InvalidName},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, r *critest.Runtime, p *Puller) {
				r.AddImage("img:1", "late:latest")
				img, ref, err := p.Present(t.Context(), row.image, row.policy, nil)
				if (img != nil) != row.there || (ref != "") != row.there || reason(err) != row.want {
					t.Errorf("image %v, reference %q, error %v", img, ref, err)
				}
				if n := r.Count("PullImage"); n != 0 {
					t.Errorf("%d pulls", n)
				}
			})
		})
	}
}

func TestOnePullPerReferenceWhoeverAsks(t *testing.T) {
	bubble(t, 4, func(t *testing.T, r *critest.Runtime, p *Puller) {
		r.OnPull("img:1", time.Minute, nil)
		var told []time.Duration
		p.pulled = func(took time.Duration, bytes uint64) { told = append(told, took) }
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if img, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "img:1"}); err != nil || img == nil {
					t.Errorf("image %v, error %v", img, err)
				}
			})
		}
		all.Wait()
		if n := r.Count("PullImage"); n != 1 {
			t.Errorf("%d pulls", n)
		}
		if len(told) != 1 || told[0] != time.Minute {
			t.Errorf("told of pulls that took %v", told)
		}
	})
}

func TestPullsAreBounded(t *testing.T) {
	bubble(t, 2, func(t *testing.T, r *critest.Runtime, p *Puller) {
		r.OnPull("", time.Minute, nil)
		start := time.Now()
		var all sync.WaitGroup
		for k := range 5 {
			all.Go(func() { _, _, _ = p.Pull(t.Context(), Request{Pod: "u", Image: fmt.Sprintf("img:%d", k)}) })
		}
		all.Wait()
		if took := time.Since(start); took != 3*time.Minute {
			t.Errorf("five pulls of a minute, two at a time, took %s", took)
		}
	})
}

func TestAPullThatNobodyWaitsForEnds(t *testing.T) {
	bubble(t, 1, func(t *testing.T, r *critest.Runtime, p *Puller) {
		r.OnPull("img:1", time.Hour, nil)
		gone := errors.New("the pod is gone")
		first, leave := context.WithCancelCause(t.Context())
		second, leaveToo := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for _, ctx := range []context.Context{first, second} {
			all.Go(func() {
				if _, _, err := p.Pull(ctx, Request{Pod: "u", Image: "img:1"}); !errors.Is(err, gone) {
					t.Errorf("error %v", err)
				}
			})
		}
		synctest.Wait()
		leave(gone)
		synctest.Wait()
		if len(p.slots) != 1 {
			t.Errorf("the pull ended while somebody waited for it")
		}
		leaveToo(gone)
		all.Wait()
		synctest.Wait()
		if len(p.slots) != 0 {
			t.Errorf("the pull goes on")
		}
	})
}

func TestAFailedPullSaysWhyAndARuntimeThatIsDownIsNoFailure(t *testing.T) {
	bubble(t, 1, func(t *testing.T, r *critest.Runtime, p *Puller) {
		r.OnPull("img:1", 0, errors.New("no such manifest"))
		if _, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "img:1"}); reason(err) != ErrImagePull {
			t.Errorf("error %v", err)
		}
		r.Stop()
		_, _, err := p.Pull(t.Context(), Request{Pod: "v", Image: "img:1"})
		var e *Error
		if errors.As(err, &e) || !cri.Unavailable(err) {
			t.Errorf("error %v", err)
		}
	})
}

func TestANameThatTheRuntimeDoesNotResolve(t *testing.T) {
	const said = "short name mode is enforcing, but image name nginx:1 returns ambiguous list"
	const want = ": give the full name in the manifest, such as docker.io/library/nginx:1"
	bubble(t, 1, func(t *testing.T, r *critest.Runtime, p *Puller) {
		r.OnPull("nginx:1", 0, errors.New(said))
		if _, _, err := p.Pull(t.Context(), Request{Pod: "u", Image: "nginx:1"}); reason(err) != ErrImagePull || !strings.HasSuffix(err.Error(), said+want) {
			t.Errorf("pull: %v", err)
		}
		r.Fault(critest.On("ImageStatus").Fail(codes.Unknown, said))
		if _, _, err := p.Present(t.Context(), "nginx:1", v1.PullIfNotPresent, nil); reason(err) != ErrInspect || !strings.HasSuffix(err.Error(), said+want) {
			t.Errorf("look: %v", err)
		}
	})
}
