package pleg

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/podspec"
	"monopod/cri"
	"monopod/cri/critest"
	"monopod/manifests"
)

func listing100ms(t *testing.T, test func(*testing.T, *critest.Runtime, *Lister)) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		r.Fault(critest.On("ListPodSandbox").Delay(100 * time.Millisecond))
		test(t, r, &Lister{cri: cri.New(r.Conn()), instance: "i"})
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

// A listing that was begun before may lack what the one who asks has just done.
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
		got, err := l.List(t.Context())
		if err != nil || got.Pods[key] == nil || len(got.Pods[key].Sandboxes) != 1 {
			t.Errorf("error %v, listing %+v", err, got)
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
	l := &Lister{cri: c, instance: "i"}
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

func look(t *testing.T, l *Lister, seen uint64) *listing {
	n, err := l.look(t.Context(), seen)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestALookAtTheSameListingSortsNothing(t *testing.T) {
	_, l := wired(t)
	id := runSandbox(t, l, "a")
	first := look(t, l, 0)
	if len(first.Pods) != 1 {
		t.Fatalf("%d pods", len(first.Pods))
	}
	if n := look(t, l, first.version); n.version != first.version || n.Pods != nil {
		t.Errorf("the same listing: version %d after %d, %v", n.version, first.version, n.Pods)
	}
	all, err := l.List(t.Context())
	if err != nil || len(all.Pods) != 1 || all.version != first.version {
		t.Errorf("asked for its pods: %+v, %v", all, err)
	}
	if err := l.cri.StopSandbox(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	n := look(t, l, first.version)
	if n.version == first.version || len(n.Pods) != 1 {
		t.Fatalf("a sandbox has stopped: %+v", n)
	}
	for _, p := range n.Pods {
		if p.Sandboxes[0].State != rt.PodSandboxState_SANDBOX_NOTREADY {
			t.Error("its state is the old one")
		}
	}
}

func TestAChangeOfContainersKeepsTheSandboxes(t *testing.T) {
	r, l := wired(t)
	r.AddImage("img:1")
	id := runSandbox(t, l, "a")
	seen := look(t, l, 0).version
	_ = look(t, l, seen) // which drops what is decoded
	labels := map[string]string{podspec.LabelInstance: "i", podspec.LabelPodName: "a", podspec.LabelPodNamespace: "default", podspec.LabelPodUID: "u"}
	_, err := l.cri.CreateContainer(t.Context(), id, &rt.ContainerConfig{Metadata: &rt.ContainerMetadata{Name: "main"}, Image: &rt.ImageSpec{Image: "img:1"}, Labels: labels},
		&rt.PodSandboxConfig{Metadata: &rt.PodSandboxMetadata{Name: "a", Namespace: "default", Uid: "u"}, Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	p := look(t, l, seen).Pods[manifests.Key{Namespace: "default", Name: "a"}]
	if p == nil || len(p.Sandboxes) != 1 || len(p.Containers) != 1 {
		t.Errorf("listed: %+v", p)
	}
}

// Others list, too, and see the change first.
func TestALookSeesWhatOthersHaveSeenBefore(t *testing.T) {
	_, l := wired(t)
	seen := look(t, l, 0).version
	runSandbox(t, l, "a")
	if _, err := l.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := look(t, l, seen); n.version == seen || len(n.Pods) != 1 {
		t.Errorf("version %d after %d, %v", n.version, seen, n.Pods)
	}
}

func TestAListingThatFailedHidesNoChange(t *testing.T) {
	r, l := wired(t)
	seen := look(t, l, 0).version
	runSandbox(t, l, "a")
	r.Fault(critest.On("ListContainers").Times(1).Fail(codes.Unknown, "busy"))
	if _, err := l.look(t.Context(), seen); err == nil {
		t.Fatal("no error")
	}
	if n := look(t, l, seen); n.version == seen || len(n.Pods) != 1 {
		t.Errorf("version %d after %d, %v", n.version, seen, n.Pods)
	}
}
