package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

// bench is a Set of which all probes are commands, in a bubble. The command of
// a probe is its kind, preceded by the container's name where tests need it.
type bench struct {
	*testing.T
	*Set
	began time.Time
	log   strings.Builder

	mu    sync.Mutex
	does  map[string]error         // what each command ends with; nil: success
	takes map[string]time.Duration // how long each command takes
	at    map[string][]time.Duration
	told  int
}

var errBroken = errors.New("broken") // a failure; other errors are the runtime's

func set(t *testing.T, test func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, began: time.Now(), does: map[string]error{}, takes: map[string]time.Duration{}, at: map[string][]time.Duration{}}
		b.Set = NewSet(&Prober{}, b.run, func() { b.mu.Lock(); b.told++; b.mu.Unlock() }, slog.New(slog.NewTextHandler(&b.log, nil)))
		test(b)
		b.Close()
	})
}

func (b *bench) run(ctx context.Context, t *Target, command []string, timeout time.Duration) (string, int32, error) {
	b.mu.Lock()
	name := command[0]
	b.at[name] = append(b.at[name], time.Since(b.began))
	err, takes := b.does[name], b.takes[name]
	b.mu.Unlock()
	select {
	case <-time.After(min(takes, timeout)):
	case <-ctx.Done():
		return "", 0, ctx.Err()
	}
	switch {
	case takes > timeout:
		return "", 0, context.DeadlineExceeded
	case errors.Is(err, errBroken):
		return err.Error(), 1, nil
	}
	return "", 0, err
}

func (b *bench) make(command string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.does[command] = err
}

// after lets time pass.
func (b *bench) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// expect checks what is known of container "id", but for what fails below its threshold.
func (b *bench) expect(want Results) {
	b.Helper()
	got := b.Results()["id"]
	got.Failing = want.Failing
	if got != want {
		b.Fatalf("after %s: %+v, want %+v", time.Since(b.began), got, want)
	}
}

// times checks when a command was run, in seconds since the beginning.
func (b *bench) times(command string, want ...float64) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var got []float64
	for _, d := range b.at[command] {
		got = append(got, d.Seconds())
	}
	if !slices.Equal(got, want) {
		b.Errorf("%s ran at %v, want %v", command, got, want)
	}
}

// each returns a probe by command each so many seconds that fails at once.
func each(command string, period int32) *v1.Probe {
	return &v1.Probe{PeriodSeconds: period, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
		ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{command}}}}
}

// target returns a target "id" that has just been started.
func target(c v1.Container) Target {
	c.Name = "c"
	return Target{ID: "id", Began: time.Now(), Container: &c}
}

func TestReadinessFollowsItsThresholds(t *testing.T) {
	set(t, func(b *bench) {
		r := each("readiness", 1)
		r.SuccessThreshold, r.FailureThreshold = 2, 3
		b.Follow([]Target{target(v1.Container{ReadinessProbe: r})})
		b.expect(Results{Started: true})
		b.after(900 * time.Millisecond)
		b.expect(Results{Started: true})
		b.after(200 * time.Millisecond)
		b.expect(Results{Started: true, Ready: true})
		b.make("readiness", errBroken)
		b.after(2 * time.Second)
		b.expect(Results{Started: true, Ready: true})
		b.make("readiness", nil) // which starts the count again
		b.after(time.Second)
		b.make("readiness", errBroken)
		b.after(2 * time.Second)
		b.expect(Results{Started: true, Ready: true})
		b.after(time.Second)
		b.expect(Results{Started: true, Text: "Readiness probe failed: broken"})
		if b.told != 3 {
			b.Errorf("changes were told %d times, want 3", b.told)
		}
		if n := strings.Count(b.log.String(), "probe fails"); n != 2 {
			b.Errorf("that it fails was said %d times, want 2:\n%s", n, b.log.String())
		}
	})
}

func TestNothingButTheStartupProbeRunsUntilItSucceeds(t *testing.T) {
	set(t, func(b *bench) {
		b.make("startup", errBroken)
		s := each("startup", 2)
		s.FailureThreshold = 5
		b.Follow([]Target{target(v1.Container{StartupProbe: s, LivenessProbe: each("liveness", 1), ReadinessProbe: each("readiness", 1)})})
		b.after(3 * time.Second)
		b.expect(Results{Text: "Startup probe failed: broken"})
		b.times("liveness")
		b.times("readiness")
		b.make("startup", nil)
		b.after(1500 * time.Millisecond)
		b.expect(Results{Started: true, Ready: true})
		b.after(2 * time.Second)
		b.times("startup", 0, 2, 4)
		b.times("liveness", 4, 5, 6)
		b.times("readiness", 4, 5, 6)
	})
}

func TestAStartupProbeThatFailsForGood(t *testing.T) {
	set(t, func(b *bench) {
		b.make("startup", errBroken)
		s := each("startup", 2)
		s.FailureThreshold = 3
		b.Follow([]Target{target(v1.Container{StartupProbe: s, LivenessProbe: each("liveness", 1)})})
		b.after(time.Minute)
		text := "Startup probe failed: broken"
		b.expect(Results{Failed: Startup, Why: text, Text: text})
		b.times("startup", 0, 2, 4)
		b.times("liveness")
	})
}

func TestALivenessProbeThatFailsIsTheLast(t *testing.T) {
	set(t, func(b *bench) {
		l := each("liveness", 10)
		l.FailureThreshold = 3
		b.Follow([]Target{target(v1.Container{LivenessProbe: l, ReadinessProbe: each("readiness", 10)})})
		b.after(time.Second)
		b.make("liveness", errBroken)
		b.after(20 * time.Second)
		b.expect(Results{Started: true, Ready: true})
		if got, want := b.Results()["id"].Failing, [3]string{"", "Liveness probe failed: broken", ""}; got != want {
			b.Errorf("failing are %q", got)
		}
		b.after(10 * time.Second)
		b.expect(Results{Started: true, Ready: true, Failed: Liveness, Why: "Liveness probe failed: broken"})
		b.after(20 * time.Second)
		b.times("liveness", 0, 10, 20, 30)
		b.times("readiness", 0, 10, 20, 30, 40, 50)
	})
}

func TestProbesBeginAfterTheInitialDelay(t *testing.T) {
	for name, row := range map[string]struct {
		began time.Duration // before now
		first float64
	}{
		"counted from the start":            {0, 5},
		"less what has passed":              {2 * time.Second, 3},
		"nothing if it has passed":          {time.Hour, 0},
		"not more if the clock was set off": {-24 * time.Hour, 5},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, func(b *bench) {
				l := each("liveness", 10)
				l.InitialDelaySeconds = 5
				c := target(v1.Container{LivenessProbe: l})
				c.Began = c.Began.Add(-row.began)
				b.Follow([]Target{c})
				b.after(11 * time.Second)
				if row.first < 1 {
					b.times("liveness", row.first, 10)
				} else {
					b.times("liveness", row.first)
				}
			})
		})
	}
}

func TestAContainerThatIsNotReadyAtFirstIsAskedSooner(t *testing.T) {
	set(t, func(b *bench) {
		b.make("readiness", errBroken)
		b.Follow([]Target{target(v1.Container{ReadinessProbe: each("readiness", 10)})})
		b.after(21 * time.Second)
		b.times("readiness", 0, 1, 3, 7, 10, 20)
	})
	set(t, func(b *bench) {
		b.make("readiness", errBroken)
		b.Follow([]Target{target(v1.Container{ReadinessProbe: each("readiness", 10)})})
		b.after(2 * time.Second)
		b.make("readiness", nil)
		b.after(10 * time.Second)
		b.make("readiness", errBroken)
		b.after(20 * time.Second)
		b.times("readiness", 0, 1, 3, 10, 20, 30)
	})
}

func TestProbesAreInTimeHoweverLongTheyTake(t *testing.T) {
	for _, row := range []struct {
		name    string
		takes   time.Duration
		timeout int32
		want    []float64
	}{
		{"short ones", 10 * time.Millisecond, 1, []float64{0, 1, 2, 3, 4}},
		{"nearly a period", 990 * time.Millisecond, 1, []float64{0, 1, 2, 3, 4}},
		{"a whole period, to the timeout", time.Minute, 1, []float64{0, 1, 2, 3, 4}},
		{"more than a period: as often as can be", 1500 * time.Millisecond, 2, []float64{0, 1.5, 3, 4.5}},
		{"more than two: missed ones are dropped", 2200 * time.Millisecond, 3, []float64{0, 2.2, 4.4}},
	} {
		t.Run(row.name, func(t *testing.T) {
			set(t, func(b *bench) {
				b.takes["readiness"] = row.takes
				r := each("readiness", 1)
				r.TimeoutSeconds, r.SuccessThreshold = row.timeout, 9
				b.Follow([]Target{target(v1.Container{ReadinessProbe: r})})
				b.after(4900 * time.Millisecond)
				b.times("readiness", row.want...)
			})
		})
	}
}

func TestWhatTheRuntimeCannotDoDoesNotCount(t *testing.T) {
	set(t, func(b *bench) {
		c := target(v1.Container{LivenessProbe: each("liveness", 1), ReadinessProbe: each("readiness", 1)})
		b.Follow([]Target{c})
		b.after(500 * time.Millisecond)
		b.make("liveness", errors.New("it is away"))
		b.make("readiness", errors.New("it is away"))
		b.after(2 * time.Second)
		b.expect(Results{Started: true, Ready: true})
		b.times("liveness", 0, 1, 1, 1, 2, 2, 2)
		if n := strings.Count(b.log.String(), "Liveness probe errored and resulted in unknown state: it is away"); n != 1 {
			b.Errorf("said %d times:\n%s", n, b.log.String())
		}
	})
	set(t, func(b *bench) { // one that was not ready says why nobody knows
		b.make("readiness", errors.New("it is away"))
		b.Follow([]Target{target(v1.Container{ReadinessProbe: each("readiness", 1)})})
		b.after(500 * time.Millisecond)
		b.expect(Results{Started: true, Text: "Readiness probe errored and resulted in unknown state: it is away"})
	})
}

func TestAnAdoptedContainerIsWhatItWas(t *testing.T) {
	set(t, func(b *bench) {
		b.make("readiness", errBroken)
		c := target(v1.Container{StartupProbe: each("startup", 10), LivenessProbe: each("liveness", 10), ReadinessProbe: each("readiness", 10)})
		c.Began, c.Adopted, c.Started, c.Ready = c.Began.Add(-time.Hour), true, true, true
		b.Follow([]Target{c})
		b.expect(Results{Started: true, Ready: true})
		b.after(10 * time.Second) // within a period all are asked once
		b.expect(Results{Started: true, Text: "Readiness probe failed: broken"})
		b.times("startup")
		if n, m := len(b.at["liveness"]), len(b.at["readiness"]); n != 1 || m < 1 {
			b.Errorf("liveness ran %d times, readiness %d", n, m)
		}
	})
	set(t, func(b *bench) {
		c := target(v1.Container{StartupProbe: each("startup", 10), ReadinessProbe: each("readiness", 10)})
		c.Adopted = true
		b.Follow([]Target{c})
		b.expect(Results{})
		b.after(10 * time.Second)
		b.expect(Results{Started: true, Ready: true})
	})
}

func TestTheFirstProbesOfManyAdoptedContainersAreSpread(t *testing.T) {
	set(t, func(b *bench) {
		var all []Target
		for k := range 100 {
			c := target(v1.Container{LivenessProbe: each("liveness", 10)})
			c.ID, c.Adopted = fmt.Sprint(k), true
			all = append(all, c)
		}
		b.Follow(all)
		b.after(10 * time.Second)
		in := map[int]int{}
		for _, d := range b.at["liveness"] {
			in[int(d/time.Second)]++
		}
		if len(b.at["liveness"]) != 100 || len(in) < 8 {
			b.Errorf("they fall into the seconds %v", in)
		}
	})
}

func TestWhatLeavesIsAskedForItsReadinessOnly(t *testing.T) {
	set(t, func(b *bench) {
		c := target(v1.Container{LivenessProbe: each("liveness", 1), ReadinessProbe: each("readiness", 1)})
		b.Follow([]Target{c})
		b.after(1500 * time.Millisecond)
		c.Leaving = true
		b.Follow([]Target{c})
		b.make("readiness", errBroken)
		b.make("liveness", errBroken)
		b.after(time.Second)
		b.times("liveness", 0, 1)
		b.expect(Results{Started: true, Text: "Readiness probe failed: broken"})
	})
}

func TestWhatIsGoneIsForgottenAndASuccessorBeginsAnew(t *testing.T) {
	set(t, func(b *bench) {
		c := target(v1.Container{ReadinessProbe: each("readiness", 1)})
		b.takes["readiness"] = 500 * time.Millisecond
		b.Follow([]Target{c})
		b.after(1200 * time.Millisecond)
		b.expect(Results{Started: true, Ready: true})
		b.Follow(nil) // in the middle of a probe
		b.after(5 * time.Second)
		b.times("readiness", 0, 1)
		if r := b.Results(); len(r) != 0 {
			b.Errorf("results %v", r)
		}
		c.ID = "id2"
		b.Follow([]Target{c})
		if r := b.Results()["id2"]; r.Ready {
			b.Errorf("the successor is ready at once")
		}
	})
}

func TestATextThatDiffersEachTimeIsToldNowAndThen(t *testing.T) {
	set(t, func(b *bench) {
		b.Follow([]Target{target(v1.Container{ReadinessProbe: each("readiness", 1)})})
		for k := range 30 {
			b.make("readiness", fmt.Errorf("%w in way %d", errBroken, k))
			b.after(time.Second)
		}
		if b.told < 3 || b.told > 4 {
			b.Errorf("told %d times in 30 s", b.told)
		}
		if text := b.Results()["id"].Text; text != "Readiness probe failed: broken in way 29" {
			b.Errorf("the text is %q", text)
		}
	})
}
