package cli

import (
	"io"
	"strings"
	"testing"

	"monopod/agent/cli/command"
)

// Whichever command asks, 3 is that no agent runs.
func TestEveryCommandThatAsksExitsWith3WithoutAnAgent(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MONOPOD_SOCKET", "")
	t.Setenv("MONOPOD_ROOT", dir) // else what an agent of this machine left would be told
	for _, line := range []string{"ps", "describe web", "events", "top", "logs web", "exec web -- true", "attach web", "port-forward web 80", "cp web:/a b",
		"restart web", "stop web", "start web", "hold", "hold web", "release", "forget web", "images"} {
		words := strings.Fields(line)
		args := append([]string{words[0], "--socket", dir + "/s"}, words[1:]...)
		err := execute(t.Context(), nil, io.Discard, io.Discard, args...)
		if command.ExitCode(err) != command.ExitDown {
			t.Errorf("%s: %v", line, err)
		}
	}
}
