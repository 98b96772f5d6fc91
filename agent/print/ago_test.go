package print

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestATimeThatIsNotKnownIsNotYearsAgo(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	boot := time.Unix(20, 0)
	for _, row := range []struct {
		name   string
		t, now time.Time
		want   string
	}{
		{"a while ago", now.Add(-5 * time.Minute), now, "5m"},
		{"never", time.Time{}, now, "<unknown>"},
		{"never, as a kubelet reports it", time.Unix(0, 0), now, "<unknown>"},
		{"never, on a machine whose clock is not set", time.Unix(0, 0), boot, "<unknown>"},
		{"before the clock was set", boot, now, "<unknown>"},
		{"on a clock that is not set", boot, boot.Add(3 * time.Second), "3s"},
	} {
		if got := Ago(row.t, row.now); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestARestartWithoutATimeIsNotYearsAgo(t *testing.T) {
	s := v1.ContainerStatus{Name: "c", RestartCount: 3}
	s.LastTerminationState.Terminated = &v1.ContainerStateTerminated{FinishedAt: metav1.Unix(0, 0)}
	p := &v1.Pod{Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{s}}}
	if got := restarts(p, false, time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)); got != "3" {
		t.Errorf("%q", got)
	}
}

// All ages go through Ago, which knows of times that are none.
func TestNothingElsePrintsAges(t *testing.T) {
	for _, pattern := range []string{"../*.go", "../*/*.go", "../cli/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if base := filepath.Base(name); base != "ago.go" && base != "ago_test.go" && strings.Contains(string(text), "HumanDuration(") {
				t.Errorf("%s prints an age by itself", name)
			}
		}
	}
}
