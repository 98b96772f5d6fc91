package once

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podlog"
	"monopod/agent/status"
)

// actor is an agent that does as the test says.
type actor struct {
	*testing.T
	store   *status.Store
	gone    chan struct{}
	end     chan error // ends Run
	stops   time.Duration
	deaf    bool // only a kill makes pods go
	dead    bool // nothing does
	left    error
	mu      sync.Mutex
	retired time.Time
	kills   int

	config  Config
	signals chan os.Signal
	out     strings.Builder
	err     strings.Builder
}

func (a *actor) Store() *status.Store  { return a.store }
func (a *actor) Gone() <-chan struct{} { return a.gone }

func (a *actor) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return a.left
	case err := <-a.end:
		return err
	}
}

func (a *actor) Retire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.retired = time.Now()
	if !a.deaf && !a.dead {
		time.AfterFunc(a.stops, func() { close(a.gone) })
	}
}

func (a *actor) Kill(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kills++; a.kills == 2 && a.deaf {
		close(a.gone)
	}
	return nil
}

func (a *actor) up(up bool) {
	a.store.SetRuntime(status.Runtime{Up: up, Endpoint: "unix:///r", Error: "gone"})
}

func (a *actor) report(v view) {
	p := *v.pod
	p.Status = *v.status
	a.store.SetPod(key(v.pod), &p)
}

// tell runs pods in a bubble; story goes on beside it. It returns the exit code
// and how long it took.
func tell(t *testing.T, pods []*v1.Pod, prepare func(*actor), story func(*actor)) (*actor, int, time.Duration) {
	a := &actor{T: t, stops: time.Second}
	root := t.TempDir()
	code, took := 0, time.Duration(0)
	synctest.Test(t, func(t *testing.T) {
		var err error
		if a.store, err = status.Open(filepath.Join(root, "status"), slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		a.gone, a.end, a.signals = make(chan struct{}), make(chan error, 1), make(chan os.Signal, 4)
		a.config = Config{Agent: a, Pods: pods, Root: root, Signals: a.signals, Out: &a.out, Err: &a.err,
			read: func(ctx context.Context, dir string, o podlog.Options, emit func(podlog.Line) error) error {
				select {
				case <-o.Ended:
				case <-ctx.Done():
				}
				return emit(podlog.Line{Text: []byte("from " + filepath.Base(dir))})
			}}
		a.up(true)
		if prepare != nil {
			prepare(a)
		}
		var beside sync.WaitGroup
		beside.Go(func() { story(a) })
		started := time.Now()
		code = Run(t.Context(), a.config)
		took = time.Since(started)
		beside.Wait()
		a.store.Close(context.Background())
	})
	return a, code, took
}

func (a *actor) says(words ...string) {
	a.Helper()
	for _, w := range words {
		if !strings.Contains(a.err.String(), w) {
			a.Errorf("does not say %q but\n%s", w, &a.err)
		}
	}
}

func TestARunEndsWithItsWork(t *testing.T) {
	job, db := made("job", "Never", "c"), made("db", "Always", "c")
	a, code, took := tell(t, []*v1.Pod{job, db}, nil, func(a *actor) {
		a.report(now(db, v1.PodRunning, states{"c": runs}))
		a.report(now(job, v1.PodRunning, states{"c": runs}))
		time.Sleep(10 * time.Second)
		a.report(now(job, v1.PodFailed, states{"c": exited("1", 7)}))
	})
	if code != 7 || took != 11*time.Second {
		t.Errorf("code %d after %s", code, took)
	}
	if a.out.Len() != len("job/c | from c\ndb/c  | from c\n") {
		t.Errorf("printed\n%s", &a.out)
	}
	a.says("pod job failed: container c ended with exit code 7")
}

func TestARunIsCutShort(t *testing.T) {
	job := made("job", "Never", "c")
	nothing := func(*actor) {}
	signal := func(after time.Duration, all ...os.Signal) func(*actor) {
		return func(a *actor) {
			for _, s := range all {
				time.Sleep(after)
				a.signals <- s
			}
		}
	}
	for _, row := range []struct {
		name    string
		prepare func(*actor)
		story   func(*actor)
		code    int
		took    time.Duration
		says    string
	}{
		{"by its timeout", func(a *actor) { a.config.Timeout = time.Minute }, nothing, 124, 61 * time.Second, "not ended within 1m0s"},
		{"by SIGINT", nil, signal(time.Second, os.Interrupt), 130, 2 * time.Second, "interrupted by SIGINT"},
		{"by SIGTERM", nil, signal(time.Second, syscall.SIGTERM), 143, 2 * time.Second, "interrupted by SIGTERM"},
		{"by SIGHUP", nil, signal(time.Second, syscall.SIGHUP), 129, 2 * time.Second, "interrupted by SIGHUP"},
		{"by one that comes twice", func(a *actor) { a.deaf = true }, func(a *actor) {
			time.Sleep(time.Second)
			a.signals <- syscall.SIGTERM
			time.Sleep(10 * time.Millisecond)
			a.signals <- syscall.SIGTERM
		}, 143, 91 * time.Second, "the pods do not stop"},
		{"by two in quick succession", func(a *actor) { a.deaf = true }, func(a *actor) {
			time.Sleep(time.Second)
			a.signals <- os.Interrupt
			time.Sleep(oneSignal + time.Millisecond)
			a.signals <- os.Interrupt
		}, 130, time.Second, "kills what still runs"},
		{"by two", func(a *actor) { a.deaf = true }, signal(time.Second, os.Interrupt, os.Interrupt), 130, 2 * time.Second, "kills what still runs"},
		{"by three", func(a *actor) { a.dead, a.left = true, errors.New("something is left of pod default/job-n") },
			signal(time.Second, os.Interrupt, syscall.SIGTERM, os.Interrupt), 130, 3 * time.Second, "something is left of pod default/job-n"},
		{"by a kill that is of no use", func(a *actor) { a.dead, a.left = true, errors.New("something is left of pod default/job-n") },
			signal(time.Second, os.Interrupt, os.Interrupt), 130, 32 * time.Second, "not gone after 30s"},
		{"by pods that do not stop", func(a *actor) { a.deaf = true }, signal(time.Second, os.Interrupt), 130, 91 * time.Second, "the pods do not stop"},
		{"by a runtime that never answers", func(a *actor) { a.up(false) }, nothing, 125, 10 * time.Second, "has not answered for 10s: gone"},
		{"by a signal while the runtime does not answer", func(a *actor) { a.up(false) }, signal(time.Second, os.Interrupt), 130, time.Second, "SIGINT"},
		{"by a runtime that dies", func(a *actor) { a.dead, a.left = true, errors.New("something is left of pod default/job-n") }, func(a *actor) {
			time.Sleep(5 * time.Second)
			a.up(false)
		}, 125, 35 * time.Second, "monopod once --remove"},
		{"by an agent that cannot go on", nil, func(a *actor) { a.end <- errors.New("no cgroups") }, 125, 0, "no cgroups"},
		{"by an image name that is none", nil, func(a *actor) {
			a.report(now(job, v1.PodPending, states{"c": waiting("InvalidImageName", "bad!")}))
		}, 125, 4 * time.Second, "job/c cannot start: InvalidImageName: bad!"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, code, took := tell(t, []*v1.Pod{job}, row.prepare, row.story)
			if took -= took % time.Second; code != row.code || took != row.took {
				t.Errorf("code %d after %s, want %d after %s", code, took, row.code, row.took)
			}
			a.T = t
			a.says(row.says)
		})
	}
}

func TestARuntimeThatIsAwayForAWhile(t *testing.T) {
	job := made("job", "Never", "c")
	_, code, _ := tell(t, []*v1.Pod{job}, nil, func(a *actor) {
		for range 3 {
			time.Sleep(time.Second)
			a.up(false)
			time.Sleep(20 * time.Second)
			a.up(true)
		}
		a.report(now(job, v1.PodSucceeded, states{"c": exited("1", 0)}))
	})
	if code != 0 {
		t.Errorf("code %d", code)
	}
}

func TestPodsAreKept(t *testing.T) {
	web := made("web", "Always", "c")
	ready := now(web, v1.PodRunning, states{"c": runs})
	ready.status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	for _, keep := range []bool{true, false} {
		a, code, _ := tell(t, []*v1.Pod{web}, func(a *actor) { a.config.Ready, a.config.Keep = true, keep }, func(a *actor) {
			time.Sleep(time.Second)
			a.report(ready)
		})
		if code != 0 || a.retired.IsZero() != keep {
			t.Errorf("keep %v: code %d, retired %v", keep, code, !a.retired.IsZero())
		}
		if keep {
			a.says("`monopod once --remove " + a.config.Root + "`")
		}
	}
}

func TestWhatIsLeftIsRemoved(t *testing.T) {
	_, code, took := tell(t, nil, nil, func(*actor) {})
	if code != 0 || took != time.Second {
		t.Errorf("code %d after %s", code, took)
	}
	a, code, _ := tell(t, nil, func(a *actor) { a.up(false); a.dead, a.left = true, errors.New("something is left of it") }, func(*actor) {})
	if code != 125 {
		t.Errorf("without a runtime: code %d", code)
	}
	a.says("something is left of it")
	if strings.Contains(a.err.String(), "all is removed") {
		t.Errorf("says that all is removed:\n%s", &a.err)
	}
}

func TestWhatIsShakyMaySettle(t *testing.T) {
	job := made("job", "Never", "c")
	_, code, _ := tell(t, []*v1.Pod{job}, nil, func(a *actor) {
		a.report(refused(job, "SupplementalGroupsPolicyNotSupported", "the runtime has not answered yet"))
		time.Sleep(2 * time.Second)
		a.report(now(job, v1.PodRunning, states{"c": runs}))
		time.Sleep(10 * time.Second)
		a.report(now(job, v1.PodSucceeded, states{"c": exited("1", 0)}))
	})
	if code != 0 {
		t.Errorf("code %d", code)
	}
}
