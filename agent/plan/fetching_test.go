package plan_test

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/plan"
)

// A pull is told with how long it has taken, and again as that changes.
func TestAPullSaysHowLongItTakes(t *testing.T) {
	for _, row := range []struct {
		name   string
		queued bool
		ago    time.Duration
		want   string
		wake   time.Duration
	}{
		{"it begins", false, 0, `pulling image "img:1"`, 10 * time.Second},
		{"a clock was set back", false, -5 * time.Second, `pulling image "img:1"`, 10 * time.Second},
		{"it takes a while", false, 13 * time.Second, `pulling image "img:1", 10s so far`, 7 * time.Second},
		{"it takes a minute", false, time.Minute, `pulling image "img:1", 1m0s so far`, 10 * time.Second},
		{"it is queued", true, 9 * time.Second, `pulling image "img:1"`, time.Second},
		{"it is queued for a while", true, 10 * time.Second, `image "img:1" waits for other pulls, 10s so far`, 10 * time.Second},
	} {
		s := scene{Pod: pod(v1.RestartPolicyAlways, "a"), Accepted: true, Here: world(), Fetching: map[string]plan.Pull{"a": {Image: "img:1", Queued: row.queued, Since: noon.Add(-row.ago)}}}.Facts()
		p := plan.Make(s)
		if got := p.Waiting["a"].Message.String(); got != row.want || p.Wake.Sub(noon) != row.wake {
			t.Errorf("%s: %s, again in %s", row.name, got, p.Wake.Sub(noon))
		}
	}
}
