package worker

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/fetch"
	"monopod/agent/message"
	"monopod/agent/podspec"
	"monopod/agent/update"
	"monopod/manifests"
)

// next prepares the version that waits beside the desired pod, if there is one. The
// worker's goroutine owns it.
type next struct {
	*pod
	wait    update.Wait
	fetches *fetch.Set      // of that version
	fetched *v1.Pod         // what of it they get
	ctx     context.Context // of those
	cancel  context.CancelFunc
	again   time.Time // when to look again; zero: when something wakes the worker
}

func newNext(p *pod) *next { return &next{pod: p, cancel: func() {}} }

// follow takes over an update. It returns the fetches that were made for the pod that
// is desired from now on; nil: none.
func (n *next) follow(u Update) (made *fetch.Set) {
	was := n.wait.Next
	defer func() { n.wait.Gated = u.Gated }()
	if was != nil && manifests.Same(was, u.Next) {
		n.wait.Next = u.Next
		return nil
	}
	turn := was != nil && manifests.Same(was, u.Pod)
	if turn && n.wait.Ready {
		made = n.fetches
	}
	if turn && n.wait.Told() {
		n.Log.Info("update continues: the new version takes the place of the one before")
		n.Events.Record(events.About(u.Pod.Pod), v1.EventTypeNormal, update.ReasonContinues, message.Fixed("the new version takes the place of the one before"))
	}
	n.cancel()
	if was != nil && (u.Pod == nil || u.Pod.UID != was.UID) {
		n.Images.Forget(string(was.UID))
	}
	n.wait, n.again, n.cancel = update.Wait{Next: u.Next}, time.Time{}, func() {}
	if u.Next != nil {
		n.ctx, n.cancel = context.WithCancel(n.Life)
		n.fetches, n.fetched = fetch.NewSet(n.fetchSettings()), update.Fetched(u.Pod.Pod, u.Next.Pod)
	}
	return made
}

// look goes on with the preparation and says once what it waits for.
func (n *next) look() {
	n.again = time.Time{}
	p := n.wait.Next
	if p == nil {
		n.wait.Look(nil, "", n.current.Refused)
		n.tell(n.current.Pod)
		return
	}
	sandbox, err := podspec.SandboxConfig(p.Pod, 0, n.Machine.Now())
	if err != nil {
		n.wait.Look(nil, fmt.Sprintf("its sandbox has no config: %v", err), n.current.Refused)
		n.tell(p)
		return
	}
	lack, again := n.fetches.Prepare(n.ctx, n.fetched, sandbox)
	missing := n.Objects.Missing(p)
	n.again = again
	n.wait.Look(lack, missing, n.current.Refused)
	n.tell(p)
}

func (n *next) tell(p *manifests.Pod) {
	if p != nil && n.wait.Tell() {
		n.Log.Warn("the version before runs on", "reason", n.wait.Line())
		n.Events.Record(events.About(p.Pod), v1.EventTypeWarning, update.ReasonWaits,
			message.Instead(n.wait.Line(), message.Fixed("the version before runs on")))
	}
}

// earliest returns the earlier of t and when to look again; zero: neither.
func (n *next) earliest(t time.Time) time.Time {
	if t.IsZero() || !n.again.IsZero() && n.again.Before(t) {
		return n.again
	}
	return t
}

// fetchSettings are what fetches use of the pod.
func (p *pod) fetchSettings() fetch.Settings {
	return fetch.Settings{Images: p.Images, Events: &p.Recorder, Wake: p.Wake, Go: p.background.Go, Caught: p.caught, Fault: p.fault,
		Secrets: func(of *v1.Pod) []*v1.Secret { return p.PullSecrets(of, p.Objects.Now(), p.Log) }}
}
