package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/runtimewords"
)

// statusLimit bounds a server's report on a command's end.
const statusLimit = 64 << 10

// StartError is a command that could not be started. Code is 127 if there is no such command, 126
// if it cannot be executed, as in a shell, or 0 for any other reason.
type StartError struct {
	Code int
	Text string // the runtime's
}

func (e *StartError) Error() string { return e.Text }

// ended reads the exit code from a v1 Status, which ends the error stream.
func ended(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, errors.New("the runtime ended the connection and did not say how the command ended")
	}
	var s metav1.Status
	if err := json.Unmarshal(data, &s); err != nil {
		return 0, fmt.Errorf("how the command ended: %w", err)
	}
	if s.Status == metav1.StatusSuccess {
		return 0, nil
	}
	if s.Details != nil && s.Reason == "NonZeroExitCode" {
		for _, c := range s.Details.Causes {
			if c.Type != "ExitCode" {
				continue
			}
			code, err := strconv.Atoi(c.Message)
			if err != nil {
				return 0, fmt.Errorf("how the command ended: exit code %q", c.Message)
			}
			return code, nil
		}
	}
	return 0, &StartError{Code: runtimewords.Of(runtimewords.Exec, s.Message).ExitCode(), Text: s.Message}
}
