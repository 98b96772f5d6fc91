package image

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
			all, err := y.Prune(y.Context(), []string{"former"}, dry)
			if err != nil || len(all) != 1 || all[0].Name() != "docker.io/library/spare:latest" {
				y.Errorf("dry %t: %v, %v", dry, all, err)
			}
			if dry {
				y.has("used", "former", "filed", "pinned", "spare")
			}
		}
		y.has("used", "former", "filed", "pinned")
	})
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
