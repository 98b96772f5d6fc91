package pleg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/logrotate"
	"monopod/agent/podspec"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

func listing100ms(t *testing.T, test func(*testing.T, *critest.Runtime, *Lister)) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.Fault(critest.On("ListPodSandbox").Delay(100 * time.Millisecond))
		test(t, r, &Lister{cri: cri.New(r.Conn()), marks: &checkpoint.Marks{Instance: "i"}})
	})
}

func TestWhoeverAsksMeanwhileSharesTheNextListing(t *testing.T) {
	listing100ms(t, func(t *testing.T, r *critest.Runtime, l *Lister) {
		var all sync.WaitGroup
		ask := func() {
			all.Go(func() {
				if _, err := l.List(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		ask()
		synctest.Wait() // the first is under way
		for range 50 {
			ask()
		}
		all.Wait()
		if n := r.Count("ListPodSandbox"); n != 2 {
			t.Errorf("listed %d times for 51 who asked", n)
		}
	})
}

// A listing that was started before may lack what the one who asks has just done.
func TestAListingIsBegunAfterItWasAskedFor(t *testing.T) {
	listing100ms(t, func(t *testing.T, r *critest.Runtime, l *Lister) {
		go l.List(t.Context())
		time.Sleep(150 * time.Millisecond)
		var first sync.WaitGroup
		first.Go(func() { _, _ = l.List(t.Context()) })
		time.Sleep(50 * time.Millisecond)
		key := manifests.Key{Namespace: "default", Name: "web-n"}
		_, err := l.cri.RunSandbox(t.Context(), &rt.PodSandboxConfig{
			Metadata: &rt.PodSandboxMetadata{Name: key.Name, Namespace: key.Namespace, Uid: "u"},
			Labels:   map[string]string{podspec.LabelInstance: "i", podspec.LabelPodName: key.Name, podspec.LabelPodNamespace: key.Namespace, podspec.LabelPodUID: "u"},
		}, "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Pods(t.Context())
		if err != nil || got[key] == nil || len(got[key].Sandboxes) != 1 {
			t.Errorf("error %v, pods %+v", err, got)
		}
		first.Wait()
	})
}

func TestOneWhoDoesNotWaitAnyMoreKeepsNobodyFromTheListing(t *testing.T) {
	listing100ms(t, func(t *testing.T, r *critest.Runtime, l *Lister) {
		gone := errors.New("a new wish")
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := l.List(ctx); !errors.Is(err, gone) {
				t.Errorf("error %v", err)
			}
		})
		all.Go(func() {
			if _, err := l.List(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond)
		cancel(gone)
		all.Wait()
	})
}

// wired is a runtime behind its socket, whose answers have bytes.
func wired(t *testing.T) (*critest.Runtime, *Lister) {
	r := critest.Start(t)
	c, err := cri.Dial(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	l := &Lister{cri: c, marks: &checkpoint.Marks{Instance: "i"}}
	t.Cleanup(func() { l.Close(); c.Close() })
	return r, l
}

func runSandbox(t *testing.T, l *Lister, name string) (id string) {
	id, err := l.cri.RunSandbox(t.Context(), &rt.PodSandboxConfig{
		Metadata: &rt.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "u"},
		Labels:   map[string]string{podspec.LabelInstance: "i", podspec.LabelPodName: name, podspec.LabelPodNamespace: "default", podspec.LabelPodUID: "u"},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// list returns the version and the pods of a listing.
func list(t *testing.T, l *Lister) (version uint64, pods map[manifests.Key]*Listed) {
	t.Helper()
	version, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return version, l.index.all()
}

func keyOf(name string) manifests.Key { return manifests.Key{Namespace: "default", Name: name} }

// labelsOf are the labels of what belongs to a pod of runSandbox.
func labelsOf(name string) map[string]string {
	return map[string]string{podspec.LabelInstance: "i", podspec.LabelPodName: name, podspec.LabelPodNamespace: "default", podspec.LabelPodUID: "u"}
}

func createContainer(t *testing.T, l *Lister, sandbox, pod, name string) (id string) {
	id, err := l.cri.CreateContainer(t.Context(), sandbox, &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: name}, Image: &rt.ImageSpec{Image: "img:1"}, Labels: labelsOf(pod)},
		&rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: pod, Namespace: "default", Uid: "u"}, Labels: labelsOf(pod)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAListingReplacesThePodsThatHaveChanged(t *testing.T) {
	r, l := wired(t)
	r.AddImage("img:1")
	id := runSandbox(t, l, "a")
	runSandbox(t, l, "b")
	first, before := list(t, l)
	again, same := list(t, l)
	if again != first || !maps.Equal(before, same) {
		t.Errorf("the same again: version %d after %d, %v after %v", again, first, same, before)
	}
	if err := l.cri.StopSandbox(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	next, pods := list(t, l)
	was, is := before[keyOf("a")], pods[keyOf("a")]
	if next == first || len(pods) != 2 || pods[keyOf("b")] != before[keyOf("b")] {
		t.Fatalf("a sandbox has stopped: version %d after %d, %v after %v", next, first, pods, before)
	}
	if was.Sandboxes[0].State != rt.PodSandboxState_SANDBOX_READY || is.Sandboxes[0].State != rt.PodSandboxState_SANDBOX_NOTREADY || was.print == is.print {
		t.Errorf("its pod is %+v, and was %+v", is, was)
	}
}

func TestAPodIsWhatIsListedOfIt(t *testing.T) {
	r, l := wired(t)
	r.AddImage("img:1")
	l.PodLogs = "/logs"
	id := runSandbox(t, l, "a")
	_, _ = list(t, l)
	one, two := createContainer(t, l, id, "a", "one"), createContainer(t, l, id, "a", "two")
	createContainer(t, l, id, "a", "../three") // which is nobody's
	is := func(what string, sandboxes, containers int, logs ...logrotate.Container) {
		t.Helper()
		_, pods := list(t, l)
		p := l.index.of(keyOf("a"))
		if len(p.Sandboxes) != sandboxes || len(p.Containers) != containers || !slices.Equal(l.index.logs(), logs) || p.print != p.fingerprint() && len(pods) > 0 {
			t.Errorf("%s: %+v, logs %v", what, p, l.index.logs())
		}
		if names := l.index.NamesOf("u"); len(names) != len(pods) {
			t.Errorf("%s: %v have the uid", what, names)
		}
	}
	is("two containers", 1, 2)
	if err := l.cri.StartContainer(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	is("one runs", 1, 2, logrotate.Container{ID: two, Log: "/logs/default_a_u/two/0.log"})
	if err := errors.Join(l.cri.RemoveContainer(t.Context(), one), l.cri.StopContainer(t.Context(), two, 0)); err != nil {
		t.Fatal(err)
	}
	is("one is gone, the other has ended", 1, 1)
	if err := errors.Join(l.cri.StopSandbox(t.Context(), id), l.cri.RemoveSandbox(t.Context(), id)); err != nil {
		t.Fatal(err)
	}
	is("all is gone", 0, 0)
	if _, pods := list(t, l); len(pods) > 0 {
		t.Errorf("left are %v", pods)
	}
}

func TestAListingThatFailedHidesNoChange(t *testing.T) {
	r, l := wired(t)
	seen, _ := list(t, l)
	runSandbox(t, l, "a")
	r.Fault(critest.On("ListContainers").Times(1).Fail(codes.Unknown, "busy"))
	if _, err := l.List(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if len(l.index.all()) > 0 {
		t.Error("half a listing counts")
	}
	if version, pods := list(t, l); version == seen || len(pods) != 1 {
		t.Errorf("version %d after %d, %v", version, seen, pods)
	}
}

// What one pod's change costs is the same among many.
func TestAListingCostsWhatHasChanged(t *testing.T) {
	cost := map[int]float64{}
	for _, n := range []int{10, 1000} {
		var x index
		s, c := &cri.Changes[rt.PodSandbox]{}, &cri.Changes[rt.Container]{}
		for k := range n {
			s.Added = append(s.Added, &rt.PodSandbox{Id: fmt.Sprint(k), Labels: labelsOf(fmt.Sprintf("p%d", k))})
		}
		x.change("/logs", s, c)
		one := s.Added[0]
		cost[n] = testing.AllocsPerRun(20, func() {
			x.change("/logs", &cri.Changes[rt.PodSandbox]{Added: []*rt.PodSandbox{one}, Gone: []*rt.PodSandbox{one}}, c)
		})
	}
	if cost[1000] > cost[10] {
		t.Errorf("allocations: %v", cost)
	}
}
