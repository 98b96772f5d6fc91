package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"monopod/agent/status"
	"monopod/manifests"
)

// forget accepts by hand that a pod is gone that no manifest gives any more.
// It returns when the pod is sure to go. Errors are *status.Refusal, or those
// of ctx and of a disk that takes no record.
func (a *Agent) forget(ctx context.Context, namespace, pod string) (*status.Forgotten, error) {
	key := manifests.Key{Namespace: namespace, Name: pod}
	err := a.source.Forget(ctx, key)
	var wanted *manifests.WantedError
	switch {
	case err == nil:
		a.log.Info("somebody accepted that the pod is gone", "pod", key.String())
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

// folder reads what is remembered of the folder of manifests. What cannot be
// read is said in the log, and then nothing is.
func (r *root) folder(log *slog.Logger) manifests.Record {
	var out manifests.Record
	b, err := os.ReadFile(r.path("folder.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return out
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		log.Error("it is not known any more which folder the manifests came from", "file", r.path("folder.json"), "err", err)
		return manifests.Record{}
	}
	return out
}

// saveFolder writes that to disk for good.
func (r *root) saveFolder(m manifests.Record) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("record of the manifest folder: %w", err)
	}
	return status.WriteFile(r.path("folder.json"), append(b, '\n'), 0o600)
}
