package checkpoint

import (
	"encoding/json"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A grace period that is counted from the stored time is never cut short.
func TestTheStoredTimeOfARemovalIsNotEarly(t *testing.T) {
	for _, now := range []time.Time{
		time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
		time.Date(2026, 5, 4, 3, 2, 1, 1, time.UTC),
		time.Date(2026, 5, 4, 3, 2, 1, 999_999_999, time.UTC),
	} {
		c := (&Checkpoint{Pod: &v1.Pod{}}).Removing(metav1.NewTime(now))
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var read Checkpoint
		if err := json.Unmarshal(b, &read); err != nil {
			t.Fatal(err)
		}
		if late := read.Pod.DeletionTimestamp.Sub(now); late < 0 || late >= time.Second {
			t.Errorf("removed at %s, stored as %s", now, read.Pod.DeletionTimestamp)
		}
	}
}
