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

// Folder reads the record of the manifest folder. An unusable one is logged and
// ignored.
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
		log.Error("record of the manifest folder is unusable; ignoring it", "file", r.Path("folder.json"), "err", err)
		return manifests.Record{}
	}
	return out
}

// SaveFolder writes the record of the manifest folder to disk, synced.
func (r *Root) SaveFolder(m manifests.Record) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("record of the manifest folder: %w", err)
	}
	return status.WriteFile(r.Path("folder.json"), append(b, '\n'), 0o600)
}
