package pleg

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/checkpoint"
	"monopod/agent/events"
	"monopod/agent/metrics"
	"monopod/agent/status"
	"monopod/cri"
	"monopod/cri/critest"
)

// The preparation of another pod's update asks for the network, too, and may be the first to learn that
// it is back: pods that wait for it are woken all the same.
func TestPodsAreWokenWhoeverLearnsOfTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := critest.New(t)
		l := cri.New(r.Conn())
		log := slog.New(slog.DiscardHandler)
		store, err := status.Open(t.TempDir(), log)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close(t.Context())
		w := NewWatch(l, &checkpoint.Marks{Instance: "i"}, store, log)
		w.Metrics, w.Events = metrics.New(metrics.Config{}), events.Open(events.Config{Log: log})
		r.SetCondition(rt.NetworkReady, false, "x", "no network")
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		defer parts.Wait()
		defer cancel()
		parts.Go(func() { w.Run(ctx) })
		time.Sleep(time.Second)
		if first := <-w.Relists; !first.Fresh {
			t.Fatal("the first relist wakes no pod")
		}
		r.SetCondition(rt.NetworkReady, true, "", "")
		if why, err := w.AskNetwork(t.Context()); why != "" || err != nil {
			t.Fatalf("%q, %v", why, err)
		}
		time.Sleep(2 * networkEvery)
		select {
		case next := <-w.Relists:
			if !next.Fresh {
				t.Error("the relist wakes no pod")
			}
		default:
			t.Error("there is no relist")
		}
	})
}
