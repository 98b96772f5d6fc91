package agent

import (
	"os"

	"monopod/agent/status"
)

// cleanEnd is a file in the root dir that is there while no agent runs and the
// last one ended by itself. An agent removes it when it begins to work: so a
// crash, a kill and a power cut leave none, nor does a disk that takes no data.
const cleanEnd = "clean-end"

// inDoubt reports whether the last agent may have died of one of the pods that
// the checkpoints tell of. These must not start before it is certain that they
// are still wanted: else who removes the manifest that the agent dies of would
// not get rid of it.
func (a *Agent) inDoubt() bool {
	if a.once != nil {
		return false
	}
	err := os.Remove(a.root.path(cleanEnd))
	if err == nil {
		err = status.SyncDir(a.root.dir) // a power cut must not bring it back
	}
	if err != nil && len(a.source.Known) > 0 {
		a.log.Warn("the last agent did not end by itself, as far as can be told: pods start once the manifests were read, or cannot be", "pods", len(a.source.Known))
	}
	return err != nil
}

// endedCleanly lets the next agent trust the checkpoints. Where it cannot be
// written that one waits a moment longer.
func (r *root) endedCleanly() {
	_ = status.WriteFile(r.path(cleanEnd), nil, 0o600)
}
