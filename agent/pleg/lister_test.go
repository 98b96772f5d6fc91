package pleg

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
