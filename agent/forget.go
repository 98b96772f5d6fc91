package agent

import (
	"context"
	"errors"
	"fmt"

	"monopod/agent/status"
	"monopod/manifests"
)

// forget accepts by hand that a pod without a manifest is to go. It returns when the
// removal is recorded on disk. Errors are *status.Refusal, or those of ctx and of a
// disk that takes no record.
func (a *Agent) forget(ctx context.Context, namespace, pod string) (*status.Forgotten, error) {
	key := manifests.Key{Namespace: namespace, Name: pod}
	err := a.source.Forget(ctx, key)
	var wanted *manifests.WantedError
	switch {
	case err == nil:
		a.log.Info("pod forgotten by request; it is removed", "pod", key.String())
		return &status.Forgotten{Pod: key.String()}, nil
	case errors.As(err, &wanted):
		return nil, &status.Refusal{Why: fmt.Sprintf("pod %s is not forgotten: %v", key, err)}
	case errors.Is(err, manifests.ErrUnknown):
		if _, reported := a.store.Pod(key.String()); reported {
			return nil, &status.Refusal{Why: fmt.Sprintf("pod %s is being removed", key)}
		}
		return nil, &status.Refusal{Unknown: true, Why: fmt.Sprintf("there is no pod %s", key)}
	}
	return nil, err
}
