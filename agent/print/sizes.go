package print

import (
	"path/filepath"

	"monopod/agent/message"
)

func size(bytes uint64) string { return string(message.Size(bytes)) }

// within returns path relative to dir if it is inside.
func within(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); dir != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
