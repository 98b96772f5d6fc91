package plan_test

import (
	"testing"

	"monopod/agent/plan"
)

func TestAnActionInWords(t *testing.T) {
	for want, a := range map[string]plan.Action{
		"start container a #2: it crashed":  {Do: plan.DoStartContainer, Name: "a", Attempt: 2, Reason: "it crashed"},
		"create sandbox #0: the pod is new": {Do: plan.DoCreateSandbox, Reason: "the pod is new"},
		"stop container a: it is gone":      {Do: plan.DoStopContainer, Name: "a", Attempt: 2, Reason: "it is gone"},
		"forget: it is gone":                {Do: plan.DoForget, Reason: "it is gone"},
	} {
		if got := a.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
