package print

import (
	"fmt"
	"path/filepath"
)

// size prints bytes in decimal units with two digits or more.
func size(bytes uint64) string {
	units, n := []string{"kB", "MB", "GB", "TB", "PB"}, float64(bytes)
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	for k, unit := range units {
		if n /= 1000; n < 999.5 || k == len(units)-1 {
			if n < 9.95 {
				return fmt.Sprintf("%.1f %s", n, unit)
			}
			return fmt.Sprintf("%.0f %s", n, unit)
		}
	}
	return ""
}

// within returns path relative to dir if it is inside.
func within(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); dir != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
