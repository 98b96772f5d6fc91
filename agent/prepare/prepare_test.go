package prepare

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/admission"
	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/image"
	"monopod/agent/instance"
	"monopod/agent/node"
	"monopod/agent/plan/plantest"
	"monopod/agent/podspec"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
	"monopod/manifests/documents"
)

// rig prepares versions of a pod on a runtime in memory.
type rig struct {
	*testing.T
	*Shared
	runtime *critest.Runtime
	down    atomic.Bool // the runtime
	faults  atomic.Int32

	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup
	last State
	told int
}

func bubble(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := &rig{T: t, runtime: critest.New(t)}, t.TempDir()
		machine, err := node.New(node.NodeSettings{NodeName: "n", Root: dir, PodLogs: dir, ResolvConf: "/dev/null", CgroupDriver: node.DriverNone}, func() node.NodeSettings { return node.NodeSettings{} }, "an instance", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		r.Shared = &Shared{Images: image.New(cri.New(r.runtime.Conn()), image.Config{Parallel: 1}), Events: events.Open(events.Config{Log: log}),
			Disk: &instance.Disk{Root: &checkpoint.Root{Dir: dir}, Machine: machine}, Up: func() bool { return !r.down.Load() },
			Network: func() string { return "" }, AskNetwork: func(context.Context) (string, error) { return "", nil },
			Features: func(*v1.Pod) (*rt.RuntimeHandlerFeatures, error) { return nil, nil }, Uids: admission.NewTable(machine.Facts, nil, nil).Uids,
			Fault: func(*v1.Pod, string, error) { r.faults.Add(1) }, Log: log, Answers: make(chan Answer, 1000)}
		r.ctx, r.stop = context.WithCancel(context.Background())
		test(r)
		r.stop()
		r.all.Wait()
		r.Images.Wait()
	})
}

// version is a pod whose containers a, b, ... have these images.
func version(images ...string) *manifests.Pod {
	var names []string
	for k := range images {
		names = append(names, string(rune('a'+k)))
	}
	p := plantest.Pod(v1.RestartPolicyAlways, names...)
	for k, image := range images {
		p.Spec.Containers[k].Image = image
	}
	p.UID = "u-" + p.UID
	return &manifests.Pod{Pod: p, Digest: strings.Join(images, " ")}
}

// starts prepares a version beside another one.
func (r *rig) starts(p *manifests.Pod) *Task {
	t := r.Start(r.ctx, &r.all, version("img:0"), p, true)
	r.hear()
	return t
}

// hear takes what was answered by now.
func (r *rig) hear() {
	synctest.Wait()
	for len(r.Answers) > 0 {
		a := <-r.Answers
		r.last = a.State
		r.told++
	}
}

func (r *rig) after(d time.Duration) {
	time.Sleep(d)
	r.hear()
}

func texts(s State) (all []string) {
	for _, lack := range s.Lacks {
		all = append(all, lack.Text)
	}
	return all
}

// lacks checks what the version is said to lack; nothing: it is ready.
func (r *rig) lacks(lasting bool, want ...string) {
	r.Helper()
	if !slices.Equal(texts(r.last), want) || r.last.Ready != (len(want) == 0) || r.last.Lasting != lasting {
		r.Errorf("it is said that %+v, want that it lacks %q, lasting: %v", r.last, want, lasting)
	}
}

func TestAVersionIsReadyOnceAllItsImagesAreThere(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.AddImage("img:1")
		r.runtime.OnPull("img:2", time.Minute, nil)
		p := version("img:1", "img:2")
		r.starts(p)
		r.lacks(false, `image img:2 is being pulled`)
		r.after(time.Minute)
		r.lacks(false)
		if !r.last.Is(p) || len(r.last.Images) != 2 || r.last.Images["b"].Ref == "" {
			t.Errorf("%+v", r.last)
		}
		n := r.told
		r.after(time.Hour)
		if r.told != n {
			t.Errorf("it is told %d times more", r.told-n)
		}
	})
}

// What failed is said rather than what is still on its way.
func TestAFailureIsSaidBeforeAPull(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.OnPull("img:1", time.Hour, nil)
		r.runtime.Fault(critest.On("PullImage").Of("img:2").Fail(codes.NotFound, "no such image"))
		r.Images = image.New(cri.New(r.runtime.Conn()), image.Config{Parallel: 2})
		r.starts(version("img:1", "img:2"))
		if len(r.last.Lacks) != 1 || !strings.Contains(r.last.Lacks[0].Text, `image img:2 cannot be pulled: `) || time.Until(r.last.Lacks[0].Next) != 10*time.Second || !r.last.Lasting {
			t.Errorf("%+v", r.last)
		}
	})
}

// Its failure stays the reason while it is tried again.
func TestAnImageThatFailedIsTriedAgainWhenItIsTime(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.OnPull("img:1", time.Second, errors.New("no such image"))
		r.starts(version("img:1"))
		r.after(2 * time.Second)
		failed := r.last
		if len(failed.Lacks) != 1 || !failed.Lasting || r.runtime.Count("PullImage") != 1 {
			t.Fatalf("%d pulls: %+v", r.runtime.Count("PullImage"), failed)
		}
		r.runtime.OnPull("img:1", 5*time.Second, nil)
		r.after(10 * time.Second)
		if r.last.Ready || !r.last.Lasting {
			t.Errorf("while it is tried again: %+v", r.last)
		}
		r.after(time.Minute)
		r.lacks(false)
		if n := r.runtime.Count("PullImage"); n != 2 {
			t.Errorf("%d pulls", n)
		}
	})
}

// A failure that is not the image's waits longer each time, a minute at most, however often it
// is looked.
func TestRetriesOfOtherFailuresBackOff(t *testing.T) {
	for count, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute, 100: time.Minute} {
		one, now := try{count: count}, time.Now()
		one.ended(errors.New("the runtime is away"))
		settled := one.retry
		one.ended(errors.New("the runtime is away"))
		if got := one.retry.Sub(now).Round(time.Second); got != want || !one.retry.Equal(settled) {
			t.Errorf("after %d tries it waits %s, want %s; asked again until %s, not %s", count+1, got, want, one.retry, settled)
		}
	}
}

func TestAMissingObjectIsLackedUntilItIsThere(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.AddImage("img:1")
		p := version("img:1")
		p.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}}
		task := r.starts(p)
		if len(r.last.Lacks) != 1 || !strings.Contains(r.last.Lacks[0].Text, "settings") || !r.last.Lasting {
			t.Errorf("%+v", r.last)
		}
		c := documents.Read("/m/c.yaml", []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {A: b}}"), manifests.Options{})
		r.Disk.Objects.Replace([]*manifests.Object{c.Objects[0].Object}, nil)
		task.Wake()
		r.hear()
		r.lacks(false)
	})
}

// While the runtime is away nothing is asked, and what is known stays.
func TestNothingIsLookedAtWhileTheRuntimeIsAway(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.AddImage("img:1")
		r.down.Store(true)
		task := r.starts(version("img:1"))
		r.after(time.Hour)
		if r.told != 0 || r.runtime.Count("ImageStatus") != 0 {
			t.Errorf("told %d times: %+v", r.told, r.last)
		}
		r.down.Store(false)
		task.Wake()
		r.hear()
		r.lacks(false)
	})
}

// What one of the pod's parts gets wrong keeps its version waiting, and is tried again.
func TestAPanicIsWhatTheVersionLacks(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.AddImage("img:1")
		r.Disk.Machine = nil
		r.starts(version("img:1"))
		if len(r.last.Lacks) != 1 || !r.last.Lasting || r.faults.Load() != 1 {
			t.Errorf("%+v, %d faults", r.last, r.faults.Load())
		}
		r.after(faultRetry)
		if r.last.Ready || r.faults.Load() != 2 {
			t.Errorf("after a while: %+v, %d faults", r.last, r.faults.Load())
		}
	})
}

// A version that is given up ends its pulls.
func TestAnEndedPreparationTellsNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.OnPull("img:1", time.Hour, nil)
		task := r.starts(version("img:1"))
		n := r.told
		task.End(&r.all, false)
		r.after(2 * time.Hour)
		if r.told != n || task.Is(version("img:2")) || !task.Is(version("img:1")) || (*Task)(nil).Is(version("img:1")) {
			t.Errorf("told %d times more: %+v", r.told-n, r.last)
		}
	})
}

// What another version left under the uid, which a switch may have accepted by now, is not what
// this one made; what the version itself left is.
func TestAVersionThatIsGivenUpTakesAlongWhatIsItsAlone(t *testing.T) {
	for _, row := range []struct {
		name, left string
		want       bool
	}{
		{"another version's", "img:2", true},
		{"its own", "img:1", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				p := version("img:1")
				err := r.Disk.Root.SaveNext(checkpoint.NewCheckpoint(version(row.left), metav1.Now()))
				if err != nil {
					t.Fatal(err)
				}
				r.starts(p).End(&r.all, false)
				r.after(time.Minute)
				if is := r.Disk.Root.NextOf(p.Key()) != nil; is != row.want {
					t.Errorf("what is on disk stays: %v", is)
				}
			})
		})
	}
}

// The name of an image of a volume is that of the image, too.
func TestTheFirstImageThatLacksIsNamed(t *testing.T) {
	wanted := podspec.WantedImages(version("img:1").Pod, &version("img:1").Spec.Containers[0])
	for _, row := range []struct {
		err  error
		want string
	}{
		{nil, `image img:1 is being pulled`},
		{errors.New("no runtime"), `image img:1: no runtime`},
		{&image.Error{Reason: image.ErrImagePull, Image: "img:9", Err: errors.New("no route to host")}, `image img:9 cannot be pulled: no route to host`},
	} {
		if got := textOf(wanted[0].Name, row.err); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

// The last look asks the runtime for its network. Without an answer it is not said that there
// is none.
func TestTheLastLookSaysWhatItKnowsOfTheNetwork(t *testing.T) {
	for _, row := range []struct {
		says string
		err  error
		want []string
	}{
		{"", nil, nil},
		{"cni plugin not initialized", nil, []string{"the runtime has no network for pods yet: cni plugin not initialized"}},
		{"", errors.New("no answer"), []string{"the runtime does not say whether it has a network for pods: no answer"}},
	} {
		bubble(t, func(r *rig) {
			r.runtime.AddImage("img:1")
			known := ""
			r.Network = func() string { return known }
			r.AskNetwork = func(context.Context) (string, error) { known = row.says; return row.says, row.err }
			p := version("img:1")
			p.Spec.HostNetwork = false
			task := r.starts(p)
			r.lacks(false)
			task.Look(true)
			r.hear()
			if !slices.Equal(texts(r.last), row.want) || r.last.Final != (row.want == nil) {
				t.Errorf("it lacks %q, final %v, want %q", r.last.Lacks, r.last.Final, row.want)
			}
		})
	}
}

// CRI-O's ids of images are no names.
func TestTheLastLookFindsImagesOfCRIO(t *testing.T) {
	bubble(t, func(r *rig) {
		r.runtime.LikeCRIO()
		r.runtime.AddImage("img:1")
		task := r.starts(version("img:1"))
		r.lacks(false)
		task.Look(true)
		r.hear()
		r.lacks(false)
		if !r.last.Final {
			t.Error("the last look does not end")
		}
	})
}

// The sync loop takes a last look back that failed, and asks for it again once the version is said
// to be ready. A runtime that goes on to fail is asked with a back-off, and found again.
func TestALastLookThatFailsIsNotMadeAgainAtOnce(t *testing.T) {
	for name, want := range map[string]string{"images": "not now", "network": "no answer"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				asked, fails := 0, false
				r.AskNetwork = func(context.Context) (string, error) {
					asked++
					if fails && name == "network" {
						return "", errors.New(want)
					}
					return "", nil
				}
				r.runtime.AddImage("img:1")
				p := version("img:1")
				p.Spec.HostNetwork = false
				task := r.starts(p)
				r.lacks(false)
				// as the sync loop, which is told at most so often
				looks := func(d time.Duration) {
					for end := time.Now().Add(d); time.Now().Before(end) && !r.last.Final && r.told < 200; time.Sleep(100 * time.Millisecond) {
						task.Look(r.last.Ready)
						r.hear()
					}
				}
				fails = true
				if name == "images" {
					r.runtime.Fault(critest.On("ImageStatus").Fail(codes.Unknown, want))
				}
				looks(10 * time.Minute)
				calls := asked + r.runtime.Count("ImageStatus")
				if r.told > 40 || calls > 40 || r.last.Final || !strings.Contains(strings.Join(texts(r.last), ""), want) {
					t.Errorf("it is told %d times after %d calls, final %v, that it lacks %q", r.told, calls, r.last.Final, texts(r.last))
				}
				fails = false
				r.runtime.ClearFaults()
				looks(2 * time.Minute)
				if !r.last.Final {
					t.Errorf("the runtime answers, and the version lacks %q", texts(r.last))
				}
			})
		})
	}
}
