//go:build e2e

package e2e

import (
	"os"
	"testing"

	"monopod/agent/e2e/rig"
)

func TestMain(m *testing.M) {
	rig.Janitor()
	os.Exit(m.Run())
}

// versions are the containerds that everything is tested against.
func versions() []string { return []string{rig.Distro, rig.Latest} }
