package agent

import (
	"os"

	"monopod/agent/checkpoint"
	"monopod/agent/status"
)

// inDoubt reports whether the last agent may have died of one of the pods that have
// a checkpoint. These must not start before the manifests were read: else a user
// could not stop such a pod by removing its manifest.
func (a *Agent) inDoubt() bool {
	if a.once != nil {
		return false
	}
	err := os.Remove(a.root.Path(checkpoint.CleanEnd))
	if err == nil {
		err = status.SyncDir(a.root.Dir) // a power cut must not bring it back
	}
	if err != nil && len(a.source.Known) > 0 {
		a.log.Warn("the last agent did not end cleanly: pods start once the manifests were read or are known to be unreadable", "pods", len(a.source.Known))
	}
	return err != nil
}
