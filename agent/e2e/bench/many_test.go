package main

import (
	"os"
	"path/filepath"
	"testing"

	"monopod/agent/e2e/rig"
)

// The words are the agent's, as in cri.
func TestACallThatItsDeadlineEndsFailsTheMeasurement(t *testing.T) {
	for text, fails := range map[string]bool{
		"level=INFO msg=\"container started\"\n":                                            false,
		"level=WARN msg=\"runtime call hangs\"\n":                                           false,
		"level=ERROR msg=\"sync failed\" err=\"ListPodSandbox: no answer within 10.03s\"\n": true,
	} {
		log := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := &many{&bench{sheet: new(sheet)}, &monopod{agent: &rig.Agent{Log: log}}, 1}
		if err := m.starved(); (err != nil) != fails {
			t.Errorf("%s: %v", text, err)
		}
	}
}
