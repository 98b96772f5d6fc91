package doctor

import (
	"context"
	"os"
	"path/filepath"

	"monopod/cri"
)

// shutdownSeen is the file that CRI-O makes if it records whether it has ended orderly; its name
// is clean_shutdown_file's with .supported.
const shutdownSeen = "var/lib/crio/clean.shutdown.supported"

// wipedImages warns of images that do not outlive a power cut: crio wipe deletes all of them at a
// boot before which CRI-O has not ended orderly (CRI-O, internal/criocli/wipe.go).
func wipedImages(ctx context.Context, m *Machine) []Finding {
	if _, err := os.Stat(m.file(shutdownSeen)); err != nil || m.runtimeName(ctx) != cri.CRIO || !m.enabledUnit("crio-wipe.service") {
		return nil
	}
	return []Finding{warn(`systemctl disable crio-wipe.service; or clean_shutdown_file = "" below [crio] in a file in /etc/crio/crio.conf.d, then remove /`+shutdownSeen,
		"a power cut makes CRI-O delete all images, and pods wait until they can be pulled: crio-wipe.service runs at each boot")}
}

// enabledUnit reports whether a unit of systemd starts with another, and is not masked.
func (m *Machine) enabledUnit(name string) bool {
	if to, _ := os.Readlink(m.file("etc/systemd/system/" + name)); to == os.DevNull {
		return false
	}
	etc, _ := filepath.Glob(m.file("etc/systemd/system/*.*/" + name))
	lib, _ := filepath.Glob(m.file("usr/lib/systemd/system/*.*/" + name))
	return len(etc)+len(lib) > 0
}
