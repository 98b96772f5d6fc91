package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"monopod/agent/objects"
	"monopod/agent/status"
	"monopod/manifests"
)

// forget handles the owner's request that a pod, or an object such as configmap/app, without a
// manifest is removed. It returns when the removal is recorded on disk. Errors are *status.Refusal,
// or those of ctx and of a disk that takes no record.
func (a *Agent) forget(ctx context.Context, namespace, name string) (*status.Forgotten, error) {
	kind, key := "pod", manifests.Key{Namespace: namespace, Name: name}
	done, err := &status.Forgotten{Pod: key.String()}, error(nil)
	if word, object, is := strings.Cut(name, "/"); is {
		of := objects.KeyOf(word, namespace, object)
		kind, key.Name, done = word, object, &status.Forgotten{Object: of.String()}
		err = a.source.ForgetObject(ctx, of)
	} else {
		err = a.source.Forget(ctx, key)
	}
	var wanted *manifests.WantedError
	switch {
	case err == nil:
		a.log.Info(kind+" forgotten by request; it is removed", kind, key.String())
		return done, nil
	case errors.As(err, &wanted):
		return nil, &status.Refusal{Why: fmt.Sprintf("%s %s is not forgotten: %v", kind, key, err)}
	case errors.Is(err, manifests.ErrUnknown):
		if _, reported := a.store.Pod(key.String()); reported && kind == "pod" {
			return nil, &status.Refusal{Why: fmt.Sprintf("no manifest gives pod %s any more: it goes as soon as nothing holds it", key)}
		}
		return nil, &status.Refusal{Unknown: true, Why: fmt.Sprintf("there is no %s %s", kind, key)}
	}
	return nil, err
}
