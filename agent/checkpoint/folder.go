package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"monopod/agent/status"
	"monopod/manifests"
)

// Folder reads what is remembered of the folder of manifests. What cannot be
// read is said in the log, and then nothing is.
func (r *Root) Folder(log *slog.Logger) manifests.Record {
	var out manifests.Record
	b, err := os.ReadFile(r.Path("folder.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return out
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		log.Error("it is not known any more which folder the manifests came from", "file", r.Path("folder.json"), "err", err)
		return manifests.Record{}
	}
	return out
}

// SaveFolder writes that to disk for good.
func (r *Root) SaveFolder(m manifests.Record) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("record of the manifest folder: %w", err)
	}
	return status.WriteFile(r.Path("folder.json"), append(b, '\n'), 0o600)
}
