package checkpoint

import "testing"

// The kill decisions of former agents had no cause: it follows from the rest.
func TestAKillDecisionHasACause(t *testing.T) {
	for _, row := range []struct {
		name string
		is   KillDecision
		want Cause
	}{
		{"it says so", KillDecision{Cause: CauseUpdate, Requested: true, Reason: HookFailed}, CauseUpdate},
		{"it was asked for", KillDecision{Requested: true, Reason: RestartRequested}, CauseRequest},
		{"its hook has failed", KillDecision{Reason: HookFailed}, CauseHook},
		{"anything else was a probe's", KillDecision{Reason: "Container a failed liveness probe"}, CauseProbe},
	} {
		if got := row.is.withCause().Cause; got != row.want {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}
