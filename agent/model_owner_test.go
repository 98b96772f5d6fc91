package agent

import (
	"context"
	"fmt"
	"time"

	"monopod/agent/config"
	"monopod/manifests"
)

// askRestart asks for a restart of a pod, or of one of its containers.
func (w *walk) askRestart() string {
	w.reap()
	if !w.up {
		return ""
	}
	key, container := w.anyKey(), ""
	if w.rand.IntN(2) == 0 {
		container = pick(w.rand, "main", "late", "stubborn", "side", "crash")
	}
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	defer cancel()
	if _, err := w.sync.Restart(ctx, key.Namespace, key.Name, container); err != nil {
		return ""
	}
	return fmt.Sprintf("%s: restart %s", key, container)
}

// askRollback asks for the version of a pod before the one that its manifest gives.
func (w *walk) askRollback() string {
	w.reap()
	if !w.up {
		return ""
	}
	key := w.anyKey()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	if w.sync.Rollback(ctx, key, "", "the walk") != nil {
		return ""
	}
	w.unwanted[key] = w.offered[key]
	w.succession.askedBack(key, w.offered[key].Digest)
	delete(w.notes, key) // the pod may be made again
	return key.String() + ": roll back"
}

// isUnwanted reports whether p is the version that was to give way by request, of which nothing
// but the manifest may make another try.
func (w *walk) isUnwanted(p *manifests.Pod) bool {
	of := w.unwanted[p.Key()]
	return of != nil && of.Digest == p.Digest && of.UID == p.UID
}

// stopAndEdit edits a manifest while the pod is stopped, perhaps under another agent, and
// starts it.
func (w *walk) stopAndEdit() string {
	name := pick(w.rand, modelPods...)
	old, there := w.wishes[name]
	w.reap()
	if !w.up || !there {
		return ""
	}
	key := manifests.Key{Namespace: "default", Name: w.podName(name)}
	w.writeNote()
	if w.owner.Stop(w.Context(), key, nil) != nil {
		return ""
	}
	w.succession.stop(key)
	w.after(pick(w.rand, 0, time.Second, time.Minute))
	when := w.rand.IntN(3) // the edit comes: while the agent runs, while none does, before it dies
	if when == 1 {
		w.down()
	}
	edit := pick(w.rand, wish.edit, wish.editToAnother)
	changed, what := edit(old, w.rand)
	w.wishes[name] = changed
	w.deliver()
	w.reap()
	if when == 2 {
		w.down()
	}
	if !w.up {
		w.launch()
	}
	w.after(pick(w.rand, 0, time.Second))
	w.reap()
	if w.up {
		_ = w.owner.Start(w.Context(), key, nil)
	}
	return fmt.Sprintf("%s: stop, %s, start", name, what)
}

// goDown tells the agent that the machine goes down, or does not after all.
func (w *walk) goDown() string {
	w.reap()
	if !w.up {
		return ""
	}
	to := !w.sync.down.On()
	if !w.tellDown(to) {
		return ""
	}
	if to {
		return "the machine goes down"
	}
	return "the machine does not go down after all"
}

func (w *walk) tellDown(to bool) bool {
	select {
	case w.sync.down.Orders <- to:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// stayUp ends a shutdown.
func (w *walk) stayUp() {
	w.reap()
	if w.up && w.sync.down.On() {
		w.tellDown(false)
	}
}

// set gives the agent's settings what the model varies of them.
func (w *walk) set(c *config.Config) {
	c.PodLogs, c.PodNameSuffix = w.logs, !w.noSuffix
	c.ShutdownGrace, c.ShutdownGraceCritical = 20*time.Second, 5*time.Second
	if c.UpdateWindow = ""; w.shut {
		c.UpdateWindow = time.Now().AddDate(0, 0, 6).Format("Mon") + " 02:00-02:01" // beyond any walk
	}
}

// turnWindow closes or opens the update window.
func (w *walk) turnWindow() string {
	w.setWindow(!w.shut)
	return fmt.Sprintf("the update window is shut: %v", w.shut)
}

func (w *walk) setWindow(shut bool) {
	w.shut = shut
	w.succession.mu.Lock()
	if w.succession.shut = (time.Time{}); shut {
		w.succession.shut = time.Now()
	}
	w.succession.mu.Unlock()
	w.reap()
	if w.up {
		c := *w.settings.Load()
		w.set(&c)
		w.settings.Store(&c)
		w.sync.Wake()
	}
}
