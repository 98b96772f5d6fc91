package image

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"monopod/cri"
	"monopod/cri/critest"
)

func inStockedYard(t *testing.T, test func(*yard)) {
	inYard(t, Limits{}, func(y *yard) {
		y.add(1, "used", "former", "filed", "spare", "pinned")
		y.Pin("pinned")
		y.needs = []Need{{"used", "ns/web"}}
		y.config.Archived = func() map[string]string {
			return map[string]string{"docker.io/library/filed:latest": "/i/filed.tar"}
		}
		test(y)
	})
}

func TestOnlyAnImageThatNothingNeedsIsRemovedByName(t *testing.T) {
	inStockedYard(t, func(y *yard) {
		for name, says := range map[string]string{"used": "used by ns/web", "filed": "in archive /i/filed.tar: remove that first",
			"pinned": "pinned by the runtime", "unknown": "the runtime has no image unknown"} {
			_, err := y.RemoveNamed(y.Context(), name)
			var r *Refused
			if !errors.As(err, &r) || !strings.Contains(r.Why, says) || r.Unknown != (name == "unknown") {
				y.Errorf("%s: %v", name, err)
			}
		}
		e, err := y.RemoveNamed(y.Context(), "spare")
		if err != nil || e.Name() != "docker.io/library/spare:latest" {
			y.Errorf("%+v, %v", e, err)
		}
		y.has("used", "former", "filed", "pinned")
	})
}

func TestPruneRemovesWhatNothingNeeds(t *testing.T) {
	inStockedYard(t, func(y *yard) {
		for _, dry := range []bool{true, false} {
			all, err := y.Prune(y.Context(), []string{"former"}, dry, time.Hour)
			if err != nil || len(all.Removed) != 1 || all.Removed[0].Name() != "docker.io/library/spare:latest" {
				y.Errorf("dry %t: %+v, %v", dry, all, err)
			}
			if dry {
				y.has("used", "former", "filed", "pinned", "spare")
			}
		}
		y.has("used", "former", "filed", "pinned")
	})
}

// An image that the runtime does not remove stays alone.
func TestPruneGoesOnBehindAnImageThatCannotBeRemoved(t *testing.T) {
	inStockedYard(t, func(y *yard) {
		y.add(1, "another", "more")
		y.Fault(critest.On("RemoveImage").Of(y.idOf("another")).Fail(codes.FailedPrecondition, "it is leased"))
		all, err := y.Prune(y.Context(), nil, false, time.Hour)
		if err != nil {
			y.Fatal(err)
		}
		if len(all.Removed) != 3 || len(all.Failed) != 1 || !strings.HasPrefix(all.Failed[0].Error(), "remove image docker.io/library/another:latest: ") {
			y.Errorf("%d are removed, failed: %v", len(all.Removed), all.Failed)
		}
		y.has("used", "filed", "pinned", "another")
	})
}

// Many images take a slow disk longer than one request may.
func TestPruneContinuesWithTheNextRequest(t *testing.T) {
	inStockedYard(t, func(y *yard) {
		y.Fault(critest.On("RemoveImage").Delay(6 * time.Second))
		first, err := y.Prune(y.Context(), nil, false, 5*time.Second)
		if err != nil || len(first.Removed) != 1 || !first.More {
			y.Errorf("%+v, %v", first, err)
		}
		second, err := y.Prune(y.Context(), nil, false, time.Hour)
		if err != nil || len(second.Removed) != 1 || second.More {
			y.Errorf("%+v, %v", second, err)
		}
		y.has("used", "filed", "pinned")
	})
}

// idOf returns the id of an image.
func (y *yard) idOf(name string) string {
	y.Helper()
	all, _, err := y.List(y.Context())
	for _, e := range all {
		if slices.Contains(e.Names, canonical(name)) {
			return e.ID
		}
	}
	y.Fatalf("there is no %s: %v", name, err)
	return ""
}

// A pull goes on when the request that ordered it is over, and the next request joins it.
func TestAnOrderedPullOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := critest.New(t)
		runtime.OnPull("img:1", time.Minute, nil)
		o := &Orders{Puller: New(cri.New(runtime.Conn()), Config{}), Until: t.Context()}
		request := func() (bool, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			return o.Pull(ctx, "img:1")
		}
		if done, err := request(); done || err != nil {
			t.Errorf("at first: %t, %v", done, err)
		}
		if done, err := request(); !done || err != nil || runtime.Count("PullImage") != 1 {
			t.Errorf("then: %t, %v, %d pulls", done, err, runtime.Count("PullImage"))
		}
		if done, _ := request(); done {
			t.Error("a later request is answered by a pull that was over before it")
		}
		time.Sleep(time.Hour) // that pull ends, and no request waits for it
		if done, _ := request(); done {
			t.Error("a later request is answered by a pull that no request has waited for")
		}
		o.Puller.Wait()
	})
}
