package podimages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/panics"
	"monopod/agent/plan/plantest"
	"monopod/agent/podevents"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

// rig is the images of a pod on a runtime in memory.
type rig struct {
	*Set
	runtime *critest.Runtime
	woken   int      // how often the worker was woken
	faults  []string // panics that were reported
}

// bubble runs a test that ends once all fetches have.
func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{runtime: critest.New(t)}
		var mu sync.Mutex
		var all sync.WaitGroup
		caught := func(err error, what, container string) {
			mu.Lock()
			defer mu.Unlock()
			r.faults = append(r.faults, what+" of "+container)
		}
		r.Set = NewSet(Settings{
			Images:  image.New(cri.New(r.runtime.Conn()), image.Config{Parallel: 1}),
			Events:  &podevents.Recorder{Events: events.Open(events.Config{Log: slog.New(slog.DiscardHandler)}), Current: func() *manifests.Pod { return nil }},
			Secrets: func(*v1.Pod) []*v1.Secret { return nil },
			Wake: func() {
				mu.Lock()
				defer mu.Unlock()
				r.woken++
			},
			Go: all.Go,
			Caught: func(err *error, what, container string) {
				if value := recover(); value != nil {
					*err = fmt.Errorf("panic: %v", value)
					caught(*err, what, container)
				}
			},
			Fault: caught,
		})
		test(t, r)
		all.Wait()
		r.Settings.Images.Wait()
	})
}

// pod has a container "a" of the image img:1.
func pod(more ...string) *v1.Pod {
	return plantest.Pod(v1.RestartPolicyAlways, append([]string{"a"}, more...)...)
}

// of asks for the images of the container "a".
func (r *rig) of(t *testing.T, p *v1.Pod) (*Images, error) {
	return r.Of(p, "a")(t.Context(), &p.Spec.Containers[0], nil)
}

func TestAContainersImagesAreFetchedOnceInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.runtime.OnPull("img:1", time.Minute, nil)
		p, began := pod(), time.Now()
		r.All(t.Context(), p, nil)
		r.All(t.Context(), p, nil)
		synctest.Wait()
		if pull := r.Running()["a"]; pull.Image != "img:1" || pull.Queued || !pull.Since.Equal(began) {
			t.Errorf("progress %+v", pull)
		}
		if _, err := r.of(t, p); !errors.Is(err, ErrFetching) {
			t.Errorf("while it is pulled: %v", err)
		}
		r.DropEnded("a")
		if len(r.Running()) != 1 {
			t.Error("a fetch that runs is dropped")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, err := r.of(t, p); err != nil || got.Image == nil || got.Ref == "" {
			t.Errorf("got %+v, %v", got, err)
		}
		if n := r.runtime.Count("PullImage"); n != 1 || r.woken != 1 || len(r.Running()) != 0 {
			t.Errorf("%d pulls, woken %d times, %v run", n, r.woken, r.Running())
		}
	})
}

// Of two pulls the second waits for its turn, which the plan is told.
func TestAPullThatWaitsForItsTurnSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		p := pod("b")
		p.Spec.Containers[1].Image = "img:2"
		r.runtime.OnPull("img:1", time.Minute, nil)
		r.runtime.OnPull("img:2", time.Minute, nil)
		r.Start(t.Context(), p, &p.Spec.Containers[0], nil)
		synctest.Wait()
		r.Start(t.Context(), p, &p.Spec.Containers[1], nil)
		synctest.Wait()
		if all := r.Running(); all["a"].Queued || !all["b"].Queued {
			t.Errorf("progress %+v", all)
		}
	})
}

// A container that starts again finds its image, which nobody has fetched for it.
func TestWithoutAFetchWhatIsPresentCounts(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		p := pod()
		if _, err := r.of(t, p); !errors.Is(err, ErrFetching) {
			t.Errorf("of an image that is not there: %v", err)
		}
		r.runtime.AddImage("img:1")
		if got, err := r.of(t, p); err != nil || got.Image == nil {
			t.Errorf("of one that is: %+v, %v", got, err)
		}
		if n := r.runtime.Count("PullImage"); n != 0 {
			t.Errorf("%d pulls", n)
		}
	})
}

func TestAFetchThatFailedIsKeptUntilItIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.runtime.OnPull("img:1", 0, errors.New("no such image"))
		p := pod()
		r.All(t.Context(), p, nil)
		synctest.Wait()
		var i *image.Error
		if _, err := r.of(t, p); !errors.As(err, &i) || i.Image != "img:1" {
			t.Errorf("got %v", err)
		}
		r.runtime.OnPull("img:1", 0, nil)
		r.All(t.Context(), p, nil)
		synctest.Wait()
		if _, err := r.of(t, p); err == nil {
			t.Error("it was fetched again by itself")
		}
		r.DropEnded("a")
		time.Sleep(time.Hour) // its back-off is over
		r.All(t.Context(), p, nil)
		synctest.Wait()
		if _, err := r.of(t, p); err != nil {
			t.Error(err)
		}
	})
}

// An image volume is there before its container starts.
func TestImagesOfVolumesAreFetchedWithTheContainers(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.runtime.AddImage("img:1")
		p := pod()
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "vol:1"}}}}
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
		r.All(t.Context(), p, nil)
		synctest.Wait()
		if got, err := r.of(t, p); err != nil || got.Volumes["v"] == "" || got.Volumes["v"] == got.Ref {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// The error of several images is that of the first, however they end.
func TestTheFirstImagesErrorCounts(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.runtime.OnPull("img:1", time.Minute, errors.New("first"))
		r.runtime.OnPull("vol:1", 0, errors.New("second"))
		p := pod()
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "vol:1"}}}}
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
		r.All(t.Context(), p, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, err := r.of(t, p); err == nil || !strings.Contains(err.Error(), "first") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAPanicIsTheFetchsError(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.Settings.Secrets = func(*v1.Pod) []*v1.Secret { panic("no secrets") }
		p := pod()
		r.All(t.Context(), p, nil)
		synctest.Wait()
		if _, err := r.of(t, p); err == nil || !strings.Contains(err.Error(), "no secrets") || panics.In(err) != nil {
			t.Errorf("got %v", err)
		}
		if want := []string{"image fetch of a"}; !slices.Equal(r.faults, want) || r.woken != 1 {
			t.Errorf("reported %v, woken %d times", r.faults, r.woken)
		}
	})
}

// A version takes over what was fetched for it before it began, and nothing is asked again.
func TestASetTakesOverWhatWasFetched(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.All(t.Context(), pod(), nil)
		r.Become(pod(), Ready{"a": {Ref: "sha256:1"}})
		if got, err := r.of(t, pod()); err != nil || got.Ref != "sha256:1" {
			t.Errorf("got %+v, %v", got, err)
		}
		r.Become(pod(), nil)
		if _, _, ended := r.Ended("a"); ended || len(r.Running()) != 0 {
			t.Errorf("of nothing %v run", r.Running())
		}
	})
}

// What was fetched for one version of a pod is nothing to another that wants another image.
func TestWhatWasFetchedIsOfTheVersionThatWantsIt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		next := pod()
		next.Spec.Containers[0].Image = "img:2"
		r.runtime.AddImage("img:1")
		r.Become(next, Ready{"a": {Ref: "sha256:2"}})
		if got, err := r.of(t, pod()); err != nil || got.Ref == "sha256:2" {
			t.Errorf("got %+v, %v", got, err)
		}
		r.Drop(pod(), "a")
		if got, err := r.of(t, next); err != nil || got.Ref != "sha256:2" {
			t.Errorf("got %+v, %v", got, err)
		}
		r.Drop(next, "a")
		if _, _, ended := r.Ended("a"); ended {
			t.Error("what was used is still there")
		}
	})
}

func TestAContainerMayStartAsWhatItRan(t *testing.T) {
	for name, row := range map[string]struct {
		policy v1.PullPolicy
		change func(r *rig, old string)
		want   func(r *rig, old string) string
	}{
		"the tag stands for another image": {v1.PullIfNotPresent, func(r *rig, _ string) { r.runtime.MoveTag("img:1") }, func(_ *rig, old string) string { return old }},
		"it is pulled for each start":      {v1.PullAlways, func(r *rig, _ string) { r.runtime.MoveTag("img:1") }, func(r *rig, _ string) string { return "" }},
		"it is there no longer": {v1.PullIfNotPresent, func(r *rig, old string) {
			r.runtime.MoveTag("img:1")
			r.remove(old)
		}, func(r *rig, _ string) string { return r.id("img:1") }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				p := pod()
				p.Spec.Containers[0].ImagePullPolicy = row.policy
				r.runtime.AddImage("img:1")
				old := r.id("img:1")
				row.change(r, old)
				got, err := r.OfRan(p, "a", Ran{"": old})(t.Context(), &p.Spec.Containers[0], nil)
				want := row.want(r, old)
				switch {
				case want == "":
					if !errors.Is(err, ErrFetching) {
						t.Errorf("got %+v, %v", got, err)
					}
				case err != nil || got.Ref != want:
					t.Errorf("got %+v, %v, want %s", got, err, want)
				}
			})
		})
	}
}

// id returns what a reference stands for.
func (r *rig) id(ref string) string {
	img, err := cri.New(r.runtime.Conn()).Image(context.Background(), &rt.ImageSpec{Image: ref})
	if err != nil || img == nil {
		return ""
	}
	return img.Id
}

func (r *rig) remove(ref string) {
	_ = cri.New(r.runtime.Conn()).RemoveImage(context.Background(), ref)
}
