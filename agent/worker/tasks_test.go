package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/instance"
	"monopod/agent/plan"
	"monopod/agent/plan/plantest"
	"monopod/agent/slots"
	"monopod/manifests"
)

// hangs are the warnings of hanging calls that were recorded about the worker's pod.
func hangs(w *Worker) (n int) {
	w.pod.shared.Events.List("").Each(func(e *v1.Event) bool {
		if e.Reason == "FailedSync" && strings.Contains(e.Message, plan.Hangs) {
			n += int(e.Count)
		}
		return true
	})
	return n
}

// tasksOf runs a test with the tasks of a worker that makes no passes, and waits for them.
func tasksOf(t *testing.T, test func(t *testing.T, w *Worker)) {
	synctest.Test(t, func(t *testing.T) {
		w := idleWorker(t, &instance.Disk{}, nil)
		test(t, w)
		w.pod.background.Wait()
	})
}

func TestATaskThatWorksTooLongHangs(t *testing.T) {
	tasksOf(t, func(t *testing.T, w *Worker) {
		answer := make(chan struct{})
		k := w.tasks.start(nil, plan.Action{Do: plan.DoStopSandbox, UID: "u", ID: "s0"}, func(context.Context, *task) error {
			<-answer
			return nil
		})
		time.Sleep(slots.HangsAfter - time.Second)
		w.tasks.logHanging()
		if hangs(w) != 0 || len(w.pod.woken) != 0 {
			t.Error("it hangs before its time")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(w.pod.woken) != 1 {
			t.Error("the worker is not woken to see that it hangs")
		}
		for range 3 {
			w.tasks.logHanging()
		}
		if n := hangs(w); n != 1 {
			t.Errorf("that it hangs is said %d times", n)
		}
		if all := w.tasks.running(); len(all) != 1 || all[k.action.Key()].Since.IsZero() {
			t.Errorf("the plan is told of %+v", all)
		}
		close(answer)
		synctest.Wait()
		if took := w.tasks.take(); len(took) != 1 || took[0] != k || len(w.tasks.running()) != 0 {
			t.Errorf("took %v", took)
		}
	})
}

func TestATaskThatWaitsForASlotDoesNotHang(t *testing.T) {
	tasksOf(t, func(t *testing.T, w *Worker) {
		one, answer := slots.New(1), make(chan struct{})
		first, second := make(chan struct{}), 0
		go one.Do(t.Context(), false, func() error { <-first; return nil })
		synctest.Wait()
		k := w.tasks.start(nil, plan.Action{Do: plan.DoStopSandbox, ID: "s1"}, func(ctx context.Context, k *task) error {
			return k.inSlot(ctx, one, func() error { second++; <-answer; return nil })
		})
		time.Sleep(slots.HangsAfter - time.Second)
		w.tasks.logHanging()
		if !k.working().IsZero() || second != 0 {
			t.Fatal("it works without a slot")
		}
		close(first)
		synctest.Wait()
		if since := k.working(); !since.Equal(time.Now()) || second != 1 {
			t.Errorf("it works since %s", since)
		}
		time.Sleep(slots.HangsAfter - time.Second)
		w.tasks.logHanging()
		if hangs(w) != 0 || len(w.pod.woken) != 0 {
			t.Error("the wait for the slot counts")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		w.tasks.logHanging()
		if hangs(w) != 1 || len(w.pod.woken) != 1 {
			t.Error("it does not hang in its slot")
		}
		close(answer)
	})
}

// What waits for a slot is given up at once; what calls the runtime may end its call.
func TestACancelledTaskLeavesTheQueue(t *testing.T) {
	tasksOf(t, func(t *testing.T, w *Worker) {
		one, first := slots.New(1), make(chan struct{})
		go one.Do(t.Context(), false, func() error { <-first; return nil })
		synctest.Wait()
		k := w.tasks.start(nil, plan.Action{Do: plan.DoCreateSandbox, UID: "u"}, func(ctx context.Context, k *task) error {
			return k.inSlot(ctx, one, func() error { t.Error("it has a slot"); return nil })
		})
		w.tasks.cancelUnwanted(Update{})
		synctest.Wait()
		if !k.job.hasEnded() || !errors.Is(k.job.err, errNewVersion) {
			t.Errorf("ended %v: %v", k.job.hasEnded(), k.job.err)
		}
		close(first)
	})
}

func TestWhichTasksAnUpdateCancels(t *testing.T) {
	same := &manifests.Pod{Pod: plantest.Pod(v1.RestartPolicyAlways, "a")}
	other := &manifests.Pod{Pod: plantest.Pod(v1.RestartPolicyAlways, "a")}
	other.UID = "other"
	makes, stops := plan.Action{Do: plan.DoStartContainer, UID: "u", Name: "a"}, plan.Action{Do: plan.DoStopSandbox, UID: "u", ID: "s0"}
	halted := plan.Halt{}
	halted.Reason = "Stopped"
	for _, row := range []struct {
		name   string
		action plan.Action
		update Update
		want   bool
	}{
		{"none for the same pod", makes, Update{Pod: same}, false},
		{"what makes something of a pod that goes", makes, Update{}, true},
		{"what makes something of another instance", makes, Update{Pod: other}, true},
		{"what makes something of a pod that is not to run", makes, Update{Pod: same, Halted: halted}, true},
		{"not what removes", stops, Update{}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			tasksOf(t, func(t *testing.T, w *Worker) {
				w.pod.shared.Settings = func() plan.PlanSettings { return plan.PlanSettings{} }
				end := make(chan struct{})
				k := w.tasks.start(&plan.Facts{Pod: same}, row.action, func(ctx context.Context, k *task) error {
					select {
					case <-ctx.Done():
						return context.Cause(ctx)
					case <-end:
						return nil
					}
				})
				w.tasks.cancelUnwanted(row.update)
				synctest.Wait()
				if k.cancelled != row.want || k.job.hasEnded() != row.want {
					t.Errorf("cancelled %v, ended %v", k.cancelled, k.job.hasEnded())
				}
				close(end)
			})
		})
	}
}

// A step waits for its actions, but neither for one that hangs nor for one that runs beside.
func TestAStepDoesNotWaitForWhatHangs(t *testing.T) {
	for _, row := range []struct {
		name        string
		beside      bool
		takes, want time.Duration
		all         bool
	}{
		{"one that ends", false, 3 * time.Second, 3 * time.Second, true},
		{"one that hangs", false, time.Hour, slots.HangsAfter, false},
		{"one beside the others", true, time.Hour, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			tasksOf(t, func(t *testing.T, w *Worker) {
				began := time.Now()
				k := w.tasks.start(nil, plan.Action{Do: plan.DoRemoveVolumes, UID: "u", Beside: row.beside}, func(context.Context, *task) error {
					time.Sleep(row.takes)
					return nil
				})
				all := w.tasks.await([]*task{k})
				if took := time.Since(began); all != row.all || took != row.want {
					t.Errorf("after %s all have ended: %v", took, all)
				}
				synctest.Wait()
				if k.job.hasEnded() && len(w.pod.woken) > 0 {
					t.Error("an end that was waited for wakes the worker")
				}
				for len(w.pod.woken) > 0 {
					<-w.pod.woken
				}
				<-k.job.done
				synctest.Wait()
				if left := row.takes > row.want; (len(w.pod.woken) == 1) != left {
					t.Errorf("its end wakes the worker: %v", !left)
				}
			})
		})
	}
}

// Tasks end in whatever order, and each end is taken once.
func TestAnEndIsTakenOnce(t *testing.T) {
	tasksOf(t, func(t *testing.T, w *Worker) {
		failure := errors.New("no")
		for _, id := range []string{"a", "b"} {
			w.tasks.start(nil, plan.Action{Do: plan.DoRemoveContainer, UID: "u", ID: id}, func(context.Context, *task) error { return failure })
		}
		synctest.Wait()
		var got []string
		for _, k := range append(w.tasks.take(), w.tasks.take()...) {
			got = append(got, k.action.ID)
			if k.job.err != failure {
				t.Errorf("%s: %v", k.action.ID, k.job.err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("took %v", got)
		}
	})
}
