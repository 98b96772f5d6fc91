package cli

import (
	"testing"

	"monopod/agent/cli/clitest"
	"monopod/agent/config"
	"monopod/agent/status"
)

// Beside a running agent its folder is examined, whose name no flag need repeat; a flag wins.
func TestDoctorTakesTheFolderFromTheAgent(t *testing.T) {
	cfg := config.Default()
	cfg.Endpoint = "unix:///nowhere"
	cfg.Socket = clitest.Agent(t, "", status.Manifests{Dir: "/srv/pods"}, status.Runtime{})
	for given, want := range map[string]string{"": "/srv/pods", "/etc/pods": "/etc/pods"} {
		cfg.Manifests = given
		m, err := machine(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		m.Runtime.Close()
		if m.Config.Manifests != want {
			t.Errorf("with --manifests %q: %s", given, m.Config.Manifests)
		}
	}
}
