package probe

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func TestEachProbeIsTold(t *testing.T) {
	set(t, func(b *bench) {
		var told []string
		b.prober.Observe = func(t *Target, k Kind, f Finding, took time.Duration) {
			told = append(told, fmt.Sprint(t.Container.Name, " ", k, " ", f, " ", took))
		}
		b.takes["liveness"] = 100 * time.Millisecond
		c := target(v1.Container{LivenessProbe: each("liveness", 10)})
		b.Follow([]Target{c})
		b.after(time.Second)
		b.make("liveness", context.DeadlineExceeded) // which is the command's
		b.after(10 * time.Second)
		b.Follow(nil)
		b.after(time.Minute)
		want := []string{fmt.Sprint("c liveness ", Succeeded, " 100ms"), fmt.Sprint("c liveness ", Failed, " 100ms")}
		if !slices.Equal(told, want) {
			b.Errorf("told %q, want %q", told, want)
		}
	})
}

// Whoever forgets a container after Follow did must not hear of it again.
func TestAProbeThatEndsAfterItsContainerIsNotTold(t *testing.T) {
	set(t, func(b *bench) {
		told := 0
		b.prober.Observe = func(*Target, Kind, Finding, time.Duration) { told++ }
		c := target(v1.Container{LivenessProbe: each("liveness", 10)})
		b.Follow([]Target{c})
		l := &loop{of: b.followed["id"], kind: Liveness}
		b.observe(l, Succeeded, 0)
		b.Follow(nil)
		b.observe(l, Succeeded, 0)
		b.Follow([]Target{c}) // the same container, followed again
		b.observe(l, Succeeded, 0)
		if told != 1 {
			b.Errorf("told %d times", told)
		}
	})
}
