package client

import (
	"os"
	"path/filepath"
)

// unitDirs are where systemd looks for units (systemd.unit(5)).
var unitDirs = []string{"etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

// WhereToLook returns where to look for an agent that does not answer: at its unit if one is
// installed, else for its command.
func WhereToLook() string { return whereToLook("/") }

// whereToLook is WhereToLook for a machine whose files are below root.
func whereToLook(root string) string {
	if hasUnit(root) {
		return "`systemctl status monopod` says more"
	}
	return "is `monopod run` running?"
}

// HasUnit reports whether a unit of the agent is installed.
func HasUnit() bool { return hasUnit("/") }

func hasUnit(root string) bool {
	for _, dir := range unitDirs {
		if _, err := os.Stat(filepath.Join(root, dir, "monopod.service")); err == nil {
			return true
		}
	}
	return false
}
