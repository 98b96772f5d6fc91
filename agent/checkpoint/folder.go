package checkpoint

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"monopod/agent/disk"
	"monopod/manifests"
)

// Folder reads the record of the manifest folder. An unusable one is logged and
// ignored.
func (r *Root) Folder(log *slog.Logger) manifests.Record {
	var out manifests.Record
	if err := disk.ReadOrAside(r.Path("folder.json"), disk.JSON(&out)); err != nil {
		r.lost(log, "record of the manifest folder is unusable; ignoring it", err)
	}
	return out
}

// SaveFolder writes the record of the manifest folder to disk, synced.
func (r *Root) SaveFolder(m manifests.Record) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("record of the manifest folder: %w", err)
	}
	return disk.WriteFile(r.Path("folder.json"), append(disk.Seal(b), '\n'), 0o600)
}
