package logs

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"monopod/agent/cli/clitest"
	"monopod/agent/status"
)

// The disk that the output goes to is full: one line says so.
func TestLogsThatCannotBeWrittenAreOneError(t *testing.T) {
	o := Options{Pod: "web", PodLogs: logFolder(t, loggedFiles), Notes: io.Discard}
	o.Socket = clitest.Agent(t, loggedPods, status.Manifests{}, status.Runtime{Up: true})
	for _, o.Containers = range [][]string{{"app"}, {"app", "proxy"}} {
		if err := Print(t.Context(), full{}, o); !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", o.Containers, err)
		}
	}
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
