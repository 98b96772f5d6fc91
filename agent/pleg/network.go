package pleg

import (
	"cmp"
	"context"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// networkEvery is how often the runtime's status is requested while it has no network for pods:
// they wait for it.
const networkEvery = 2 * time.Second

// NoNetwork returns why the runtime cannot give pods a network, in its own words; "" if it can, or
// if that is not known.
func (w *Watch) NoNetwork() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.noNetwork()
}

// AskNetwork requests the runtime's status and returns NoNetwork. Any goroutine may call it.
func (w *Watch) AskNetwork(ctx context.Context) (string, error) {
	st, err := w.cri.Status(ctx)
	if err != nil {
		return "", err
	}
	w.recordConditions(st)
	return w.NoNetwork(), nil
}

func (w *Watch) noNetwork() string {
	c, isWrong := w.wrong[rt.NetworkReady]
	if !isWrong {
		return ""
	}
	return cmp.Or(w.Remedy, c.message, c.reason, "it does not say why")
}

// newNetworkTimer returns the timer of the next checkNetwork. It runs only while there
// is no network.
func (w *Watch) newNetworkTimer() *time.Timer {
	t := time.NewTimer(networkEvery)
	if w.NoNetwork() == "" {
		t.Stop()
	}
	return t
}

// checkNetwork requests the runtime's status, again soon while there is no network.
func (w *Watch) checkNetwork(ctx context.Context, network *time.Timer) error {
	if err := w.checkStatus(ctx); err != nil {
		return err
	}
	if w.NoNetwork() != "" {
		network.Reset(networkEvery)
	}
	return nil
}

// Sleep waits for d or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
