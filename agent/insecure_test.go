package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"monopod/agent/config"
	"monopod/agent/settings"
)

// A new agent refuses manifests that other users may write; one that ran before does not.
func TestOnlyANewAgentRefusesManifestsThatOthersWrite(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	cfg := config.Default()
	cfg.NodeName, cfg.Manifests, cfg.Root = "n", []string{dir}, filepath.Join(root, "new")
	if _, err := settings.Complete(cfg, false); err != nil {
		t.Errorf("refused: %v", err)
	}
	noErr(t, os.Chmod(dir, 0o777))
	_, err := settings.Complete(cfg, false)
	var wrong *SettingsError
	want := dir + " may be written by other users (mode 0777), who can run anything here as root by it: chmod go-w " + dir + "; or accept it with allowInsecureManifests: true"
	if !errors.As(err, &wrong) || err.Error() != want || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if _, err := settings.Complete(cfg, true); err != nil {
		t.Errorf("a run of once is refused: %v", err)
	}
	cfg.InsecureManifests = true
	if _, err := settings.Complete(cfg, false); err != nil {
		t.Errorf("refused though it is allowed: %v", err)
	}
	cfg.InsecureManifests = false
	noErr(t, errors.Join(os.Mkdir(cfg.Root, 0o750), os.WriteFile(filepath.Join(cfg.Root, "instance"), nil, 0o600)))
	if _, err := settings.Complete(cfg, false); err != nil {
		t.Errorf("one that ran before is refused: %v", err)
	}
}
