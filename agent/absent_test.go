package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"monopod/agent/config"
	"monopod/agent/settings"
	"monopod/manifests/decode"
)

// A new agent refuses settings that ask for what does not exist here; one that ran before
// starts, as its pods run on whatever the file says.
func TestOnlyANewAgentRefusesSettingsThatAskForWhatDoesNotExist(t *testing.T) {
	cfg := config.Default()
	cfg.NodeName, cfg.Manifests, cfg.Root = "n", []string{t.TempDir()}, filepath.Join(t.TempDir(), "new")
	cfg.Absent = []decode.Problem{{File: "c.yaml", Line: 3, Column: 2, Field: "cpuManagerPolicy", Message: "no"}, {Message: "nor this"}}
	var wrong *SettingsError
	for _, once := range []bool{false, true} {
		if _, err := settings.Complete(cfg, once); !errors.As(err, &wrong) || err.Error() != "c.yaml:3:2: cpuManagerPolicy: no\nnor this" {
			t.Errorf("once %v: %v", once, err)
		}
	}
	noErr(t, errors.Join(os.Mkdir(cfg.Root, 0o750), os.WriteFile(filepath.Join(cfg.Root, "instance"), nil, 0o600)))
	if _, err := settings.Complete(cfg, false); err != nil {
		t.Errorf("one that ran before is refused: %v", err)
	}
}
