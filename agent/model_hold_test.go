package agent

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"monopod/agent/hold"
	"monopod/cri/critest"
	"monopod/manifests"
)

// stopPod and startPod are what the owner asks for; the model ends all stops and holds
// when it waits until all is well.
func (w *walk) stopPod() string {
	w.reap()
	if !w.up {
		return ""
	}
	key := w.anyKey()
	err := w.owner.Stop(w.Context(), key, nil)
	if err != nil {
		return ""
	}
	w.succession.stop(key)
	return key.String() + ": stop"
}

func (w *walk) startPod() string {
	w.reap()
	if !w.up {
		return ""
	}
	key := w.anyKey()
	if err := w.owner.Start(w.Context(), key, nil); err != nil {
		return ""
	}
	return key.String() + ": start"
}

func (w *walk) holdPod() string {
	w.reap()
	if !w.up {
		return ""
	}
	key, q := w.anyKey(), url.Values{}
	if w.rand.IntN(3) == 0 {
		q.Set("for", "10m")
	}
	if w.rand.IntN(4) == 0 {
		key = manifests.Key{}
	}
	if err := w.owner.Hold(w.Context(), key, q); err != nil {
		return ""
	}
	return fmt.Sprintf("%s: hold %s", key, q.Get("for"))
}

func (w *walk) releasePods() string {
	w.reap()
	if !w.up {
		return ""
	}
	now := w.sync.holds.State()
	if len(now.Held) == 0 && now.Node == nil {
		return ""
	}
	for name := range now.Held {
		_ = w.owner.Release(w.Context(), hold.KeyOf(name), nil)
	}
	_ = w.owner.Release(w.Context(), manifests.Key{}, nil)
	return "release all"
}

func (w *walk) anyKey() manifests.Key {
	key := manifests.Key{Namespace: "default", Name: pick(w.rand, modelPods...)}
	if !w.noSuffix {
		key.Name += "-n"
	}
	return key
}

// letAll starts all that is stopped and releases all that is held. Nothing must run of what
// was stopped, once there was time to stop it.
func (w *walk) letAll() {
	w.Helper()
	w.reap()
	if !w.up {
		w.launch()
	}
	if len(w.sync.holds.State().Stopped) > 0 {
		w.after(modelGrace + time.Minute)
		w.reap()
		if w.up {
			if foul := w.stoppedRuns(); foul != "" {
				w.Fatal(foul)
			}
		}
	}
	w.reap()
	if !w.up {
		w.launch()
	}
	<-w.sync.podsKnown // requests wait for that
	w.releasePods()
	for name, stop := range w.sync.holds.State().Stopped {
		if !stop.Starts {
			_ = w.owner.Start(w.Context(), hold.KeyOf(name), nil)
		}
	}
}

// stoppedRuns returns a container that the agent started though its pod is stopped, once
// it has settled.
func (w *walk) stoppedRuns() string {
	for name, stop := range w.sync.holds.State().Stopped {
		running := slices.ContainsFunc(w.ourRunning(), func(c critest.Container) bool { return c.Namespace+"/"+c.Pod == name })
		if !stop.Starts && running {
			return name + " is stopped and runs"
		}
	}
	return ""
}

// heldSince says that a pod is held, and was when it was decided that an instance goes; "":
// it is not.
func (w *walk) heldSince(key manifests.Key, goes time.Time) string {
	now := w.sync.holds.State()
	if h, held := now.Held[key.String()]; held && goes.Sub(h.Since) > 2*time.Second {
		return h.Text()
	}
	return ""
}
