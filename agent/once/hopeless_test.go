package once

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests"
)

// crashed is a container after so many attempts that ended with a code, between two of them.
func crashed(attempts int32, code int32) func(*v1.ContainerStatus) {
	return func(s *v1.ContainerStatus) {
		s.RestartCount = attempts - 1
		s.ContainerID = "x"
		s.State = waiting("CrashLoopBackOff", "back-off 40s restarting failed container")
		s.LastTerminationState = exited(fmt.Sprint("x", attempts), code)
	}
}

// with changes the status of a pod's container.
func with(v view, container string, change func(*v1.ContainerStatus)) view {
	for _, all := range [][]v1.ContainerStatus{v.status.ContainerStatuses, v.status.InitContainerStatuses} {
		for k := range all {
			if all[k].Name == container {
				change(&all[k])
			}
		}
	}
	return v
}

func TestARunEndsWhenAllThatItWaitsForCrashes(t *testing.T) {
	job, db := made("job", "OnFailure", "c"), made("db", "Always", "c")
	other, two := made("other", "OnFailure", "c"), made("two", "OnFailure", "a", "b")
	initial := made("init", "OnFailure", "c")
	initial.Spec.InitContainers = []v1.Container{{Name: "i", Image: "img:1"}}
	held := after(made("held", "Never", "c"), "db")
	patient := after(made("patient", "Never", "c"), "db")
	patient.Annotations["monopod.start-after-timeout"] = "90s"
	bounded := made("bounded", "OnFailure", "c")
	bounded.Annotations = map[string]string{"monopod.job": "OnFailure/6"}
	deadline := made("deadline", "OnFailure", "c")
	deadline.Spec.ActiveDeadlineSeconds = new(int64(60))
	at := func(p *v1.Pod) view { return now(p, v1.PodRunning, states{"c": runs}) }
	on := func(p *v1.Pod, attempts int32) view { return with(at(p), "c", crashed(attempts, 3)) }
	holds := func(p *v1.Pod) view {
		return now(p, v1.PodPending, states{"c": waiting("WaitingForPods", "waits for default/db")})
	}
	ofTwo := func(b v1.ContainerState) view {
		return with(now(two, v1.PodRunning, states{"b": b}), "a", crashed(5, 1))
	}
	for _, row := range []struct {
		name string
		all  []view
		j    evaluator
		want string
	}{
		{"a job that has crashed four times", []view{on(job, 4)}, evaluator{}, ""},
		{"a job that has crashed five times", []view{on(job, 5)}, evaluator{}, "error 125"},
		{"with a limit of time", []view{on(job, 5)}, evaluator{timed: true}, ""},
		{"a job that another one runs beside", []view{on(job, 5), at(other)}, evaluator{}, ""},
		{"two of them", []view{on(job, 7), on(other, 5)}, evaluator{}, "error 125"},
		{"beside a service", []view{on(job, 5), at(db)}, evaluator{}, "error 125"},
		{"a service that nothing waits for", []view{on(db, 9), at(job)}, evaluator{}, ""},
		{"nothing but a service", []view{on(db, 9)}, evaluator{}, ""},
		{"a service that is to be ready", []view{on(db, 5)}, evaluator{ready: true}, "error 125"},
		{"a job that starts after a service that crashes", []view{holds(held), on(db, 5)}, evaluator{}, "error 125"},
		{"one that starts without it in the end", []view{holds(patient), on(db, 5)}, evaluator{}, ""},
		{"an init container", []view{with(now(initial, v1.PodPending, states{"c": waiting("PodInitializing", "")}), "i", crashed(5, 1))}, evaluator{}, "error 125"},
		{"one of two containers, while the other works", []view{ofTwo(runs)}, evaluator{}, ""},
		{"one of two containers, when the other is done", []view{ofTwo(exited("y", 0))}, evaluator{}, "error 125"},
		{"the chosen one", []view{on(job, 5), at(other)}, evaluator{from: &Chosen{job, "c"}}, ""},
		{"a Job, which has a limit of its own", []view{on(bounded, 6)}, evaluator{}, ""},
		{"a pod with a deadline", []view{on(deadline, 6)}, evaluator{}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := spell(row.j.look(row.all)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Five in a row: what ended well in between starts the count again.
func TestAnEndThatWasWellStartsTheCountAgain(t *testing.T) {
	test := made("test", "Always", "c")
	j := evaluator{ready: true}
	for attempts := int32(1); attempts <= 12; attempts++ {
		code := int32(1)
		if attempts == 4 {
			code = 0
		}
		o := j.look([]view{with(now(test, v1.PodRunning, states{}), "c", crashed(attempts, code))})
		if (o != nil) != (attempts >= 9) {
			t.Errorf("after %d attempts it is over: %+v", attempts, o)
		}
	}
}

func TestARunEndsWhenAllThatItWaitsForFailsToBeCreated(t *testing.T) {
	job := made("job", "OnFailure", "c")
	of := manifests.Key{Namespace: "default", Name: "job-n"}
	waits := now(job, v1.PodPending, states{"c": waiting("CreateContainerError", "no such device")})
	for _, row := range []struct {
		name      string
		container string
		status    view
		answers   []string
		want      bool
	}{
		{"four times", "c", waits, []string{"a", "a", "a", "a"}, false},
		{"five times", "c", waits, []string{"a", "a", "a", "a", "a"}, true},
		{"with another answer in between", "c", waits, []string{"a", "a", "b", "a", "a"}, false},
		{"with what it would have been called", "c", waits, []string{"in 5c73085b69920: no", "in 1b55aef032109: no", "in 5c73085b69920: no", "in 0000000000: no", "in 77777777: no"}, true},
		{"the pod itself", "", withSandbox(now(job, v1.PodPending, states{"c": waiting("ContainerCreating", "")}), v1.ConditionFalse), []string{"a", "a", "a", "a", "a"}, true},
		{"and it runs now", "c", now(job, v1.PodRunning, states{"c": runs}), []string{"a", "a", "a", "a", "a"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := evaluator{starts: NewStarts()}
			for k, text := range row.answers {
				j.starts.Failed(of, row.container, k+1, "CreateContainerError", text)
			}
			o := j.look([]view{row.status})
			if (o != nil) != row.want {
				t.Errorf("it is over: %+v", o)
			}
		})
	}
}

// The runtime's words need not be known, nor need there be no limit of time.
func TestARunEndsAtWhatTheRuntimeDoesNotMake(t *testing.T) {
	job, db := made("job", "OnFailure", "c"), made("db", "Always", "c")
	other := made("other", "OnFailure", "c")
	deadline := made("deadline", "OnFailure", "c")
	deadline.Spec.ActiveDeadlineSeconds = new(int64(60))
	two := made("two", "OnFailure", "c", "d")
	two.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
	const create = "CreateContainerError"
	fails := func(p *v1.Pod, reason string) view {
		return now(p, v1.PodPending, states{"c": waiting(reason, "no"), "d": runs})
	}
	for _, row := range []struct {
		name   string
		pod    *v1.Pod
		beside []view
		reason string
		times  int
		want   string
	}{
		{"four times", job, nil, create, 4, ""},
		{"five times", job, nil, create, 5, "error 125"},
		{"five times, while another job runs", job, []view{now(other, v1.PodRunning, states{"c": runs})}, create, 5, "error 125"},
		{"of a service", db, []view{now(other, v1.PodRunning, states{"c": runs})}, create, 5, "error 125"},
		{"an image that may come", job, nil, "ErrImagePull", 9, ""},
		{"a start that fails", job, nil, "RunContainerError", 9, ""},
		{"a pod with a deadline", deadline, nil, create, 9, ""},
		{"while another one may fill its volume", two, nil, create, 9, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := evaluator{timed: true, starts: NewStarts()}
			for k := range row.times {
				j.starts.Failed(manifests.Key{Namespace: "default", Name: row.pod.Name}, "c", k+1, row.reason, "no")
			}
			if got := spell(j.look(append(row.beside, fails(row.pod, row.reason)))); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestEqualAnswersDifferInNumbersAlone(t *testing.T) {
	of := manifests.Key{Namespace: "default", Name: "job-n"}
	for name, row := range map[string]struct {
		a, b string
		want int
	}{
		"the id of what was made and lost": {"container 5c73085b6992 is no file", "container abcdefabcdef is no file", 2},
		"a uuid":                           {"in 1b4e28ba-2fa1-11d2-883f-0016d3cca427: no", "in 6ba7b810-9dad-41d1-80b4-00c04fd430c8: no", 2},
		"attempts":                         {"name k8s_c_job_default_x_0 is reserved", "name k8s_c_job_default_x_1 is reserved", 2},
		"addresses":                        {"dial 10.0.0.7:443: no", "dial [fe80::a:1]:443: no", 1},
		"addresses of one kind":            {"dial [fe80::a:1]:443: no", "dial [fe80::2:cd]:80: no", 2},
		"times":                            {"at 2026-01-02T03:04:05.1Z: no", "at 2026-01-02T03:04:06+01:00: no", 2},
		"durations":                        {"after 59.5s: no", "after 1m2s: no", 2},
		"temporary files":                  {"open /run/crun/.tmp81/x: no", "open /run/crun/.tmp9/x: no", 2},
		"another trouble":                  {"stat /data: no", "stat /dev/fuse: no", 1},
	} {
		starts := NewStarts()
		starts.Failed(of, "c", 1, "CreateContainerError", row.a)
		starts.Failed(of, "c", 2, "CreateContainerError", row.b)
		if got := starts.of(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job-n"}}, "c").times; got != row.want {
			t.Errorf("%s: %d in a row, want %d", name, got, row.want)
		}
	}
}

// The first failure after a success is one in a row, whatever was before.
func TestASuccessStartsTheCountOfFailuresAgain(t *testing.T) {
	job := made("job", "OnFailure", "c")
	f := NewStarts()
	for _, nth := range []int{1, 2, 3, 4, 1, 2} {
		f.Failed(manifests.Key{Namespace: "default", Name: "job-n"}, "c", nth, "CreateContainerError", "no")
	}
	if got := f.of(job, "c"); got.times != 2 || got.text != "CreateContainerError: no" {
		t.Errorf("%d times %s", got.times, got.text)
	}
}

func TestARunWithoutALimitSaysWhyItEnds(t *testing.T) {
	job := made("job", "OnFailure", "c")
	a, code, took := tell(t, []*v1.Pod{job}, func(a *actor) { a.config.Starts = NewStarts() }, func(a *actor) {
		a.report(now(job, v1.PodPending, states{"c": waiting("RunContainerError", "no such device")}))
		for k := range 5 {
			time.Sleep(time.Minute)
			a.config.Starts.Failed(manifests.Key{Namespace: "default", Name: "job-n"}, "c", k+1, "RunContainerError", "no such device")
		}
	})
	if code != codeFailed || took.Truncate(time.Minute) != 5*time.Minute {
		t.Errorf("code %d after %s", code, took)
	}
	a.says("job/c failed to be started 5 times in a row: RunContainerError: no such device")
	if text := a.err.String(); strings.Count(text, "no --timeout is given") != 1 {
		t.Errorf("said %s", text)
	}
}

// withSandbox says of a pod whether its sandbox is there.
func withSandbox(v view, there v1.ConditionStatus) view {
	v.status.Conditions = append(v.status.Conditions, v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: there})
	return v
}

// withReady says of a pod that it is ready.
func withReady(v view) view {
	v.status.Conditions = append(v.status.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue})
	return v
}

// again is a container that runs after so many attempts that crashed.
func again(attempts int32) func(*v1.ContainerStatus) {
	return func(s *v1.ContainerStatus) {
		crashed(attempts, 1)(s)
		s.RestartCount, s.ContainerID, s.State = attempts, fmt.Sprint("x", attempts+1), runs
	}
}

// failedStarts are five failures in a row of a container of a pod, or with "" of the pod.
func failedStarts(p *v1.Pod, container, reason string) *Starts {
	s := NewStarts()
	for k := range hopelessAfter {
		s.Failed(manifests.Key{Namespace: p.Namespace, Name: p.Name}, container, k+1, reason, "no network")
	}
	return s
}

// What runs, or was made after all, may come to its end: another pod's end does not end it.
func TestARunGoesOnWithWhatGetsWell(t *testing.T) {
	job, done, svc, db := made("job", "OnFailure", "c"), made("done", "Never", "c"), made("web", "Always", "c"), made("db", "Always", "c")
	initial := made("init", "OnFailure", "c")
	initial.Spec.InitContainers = []v1.Container{{Name: "i", Image: "img:1"}}
	ended := func() view { return now(done, v1.PodSucceeded, states{"c": exited("x", 0)}) }
	of := func(p *v1.Pod, change func(*v1.ContainerStatus)) view {
		return with(now(p, v1.PodRunning, states{}), "c", change)
	}
	hooked := func(s *v1.ContainerStatus) {
		again(4)(s)
		s.State = waiting("ContainerCreating", "") // its postStart hook runs
	}
	pending := func(p *v1.Pod, all states) view {
		return withSandbox(now(p, v1.PodPending, all), v1.ConditionTrue)
	}
	for _, row := range []struct {
		name string
		all  []view
		j    evaluator
	}{
		{"the sixth attempt of a job runs, and the other job is done", []view{ended(), of(job, again(5))}, evaluator{}},
		{"the sixth attempt of a service runs and is to be ready, as its db is",
			[]view{withReady(now(db, v1.PodRunning, states{"c": runs})), of(svc, again(5))}, evaluator{ready: true}},
		{"the fifth attempt of a service is in its postStart hook", []view{of(svc, hooked)}, evaluator{ready: true}},
		{"the sandbox was made, and an init container runs",
			[]view{ended(), pending(initial, states{"i": runs, "c": waiting("PodInitializing", "")})}, evaluator{starts: failedStarts(initial, "", "FailedCreatePodSandBox")}},
		{"the sandbox was made, and an image is pulled",
			[]view{ended(), pending(job, states{"c": waiting("ContainerCreating", "pulling image")})}, evaluator{starts: failedStarts(job, "", "FailedCreatePodSandBox")}},
		{"the image could be pulled, and the container is created",
			[]view{ended(), pending(job, states{"c": waiting("ContainerCreating", "")})}, evaluator{starts: failedStarts(job, "c", "ErrImagePull")}},
		{"the container was created, ran and crashed once", []view{ended(), of(job, crashed(1, 1))}, evaluator{starts: failedStarts(job, "c", "CreateContainerError")}},
		{"so was an init container", []view{ended(), with(pending(initial, states{"c": waiting("PodInitializing", "")}), "i", crashed(1, 1))},
			evaluator{starts: failedStarts(initial, "i", "CreateContainerError")}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if o := row.j.look(row.all); o != nil {
				t.Errorf("it is over: %+v", o)
			}
		})
	}
}

// What crashed for want of another pod is tried once more when that pod is there.
func TestARunWaitsForOneMoreFailureAfterAnotherPodGotWell(t *testing.T) {
	web, job, db := made("web", "Always", "c"), made("job", "OnFailure", "c"), made("db", "Always", "c")
	of := func(p *v1.Pod, attempts int32) view {
		return with(now(p, v1.PodRunning, states{}), "c", crashed(attempts, 1))
	}
	unready := func() view { return now(db, v1.PodRunning, states{"c": runs}) }
	ready := func() view { return withReady(unready()) }
	for _, row := range []struct {
		name  string
		j     evaluator
		looks [][]view // the last one ends the run, and none before does
	}{
		{"a service whose db is ready at last", evaluator{ready: true},
			[][]view{{unready(), of(web, 5)}, {ready(), of(web, 5)}, {ready(), of(web, 6)}}},
		{"a job whose db is ready at last", evaluator{}, [][]view{{unready(), of(job, 4)}, {ready(), of(job, 5)}, {ready(), of(job, 6)}}},
		{"the db was ready long before", evaluator{ready: true}, [][]view{{ready(), of(web, 4)}, {ready(), of(web, 5)}}},
		{"the db is not ready any more", evaluator{}, [][]view{{ready(), of(job, 5)}, {unready(), of(job, 5)}}},
		{"it became ready again", evaluator{ready: true},
			[][]view{{ready(), of(web, 3)}, {unready(), of(web, 4)}, {ready(), of(web, 5)}, {ready(), of(web, 6)}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for k, all := range row.looks {
				if o := row.j.look(all); (o != nil) != (k == len(row.looks)-1) {
					t.Errorf("at look %d it is over: %+v", k+1, o)
				}
			}
		})
	}
}

// The same with what cannot be created, such as an image of a registry that is a pod of the run.
func TestAStartIsTriedOnceMoreAfterAnotherPodGotWell(t *testing.T) {
	web, registry := made("web", "Always", "c"), made("registry", "Always", "c")
	j := evaluator{ready: true, starts: failedStarts(web, "c", "ErrImagePull")}
	all := []view{withReady(now(registry, v1.PodRunning, states{"c": runs})), now(web, v1.PodPending, states{"c": waiting("ImagePullBackOff", "")})}
	if o := j.look(all); o != nil {
		t.Errorf("it is over: %+v", o)
	}
	j.starts.Failed(manifests.Key{Namespace: "default", Name: "web-n"}, "c", 6, "ErrImagePull", "no network")
	if o := j.look(all); o == nil || !strings.Contains(o.Text, "web/c failed to be created 6 times in a row") {
		t.Errorf("it goes on: %+v", o)
	}
}

// The id that a former attempt left says nothing of the next one, which cannot be made.
func TestAContainerThatRanOnceMayFailToBeCreated(t *testing.T) {
	job := made("job", "OnFailure", "c")
	j := evaluator{starts: NewStarts()}
	ran := func(reason string) []view {
		return []view{with(now(job, v1.PodRunning, states{}), "c", func(s *v1.ContainerStatus) {
			crashed(1, 1)(s)
			s.State = waiting(reason, "")
		})}
	}
	if o := j.look(ran("CrashLoopBackOff")); o != nil {
		t.Fatalf("it is over: %+v", o)
	}
	j.starts = failedStarts(job, "c", "CreateContainerError")
	if o := j.look(ran("CreateContainerError")); o == nil || !strings.Contains(o.Text, "job/c failed to be created 5 times in a row") {
		t.Errorf("it goes on: %+v", o)
	}
}

// A container that is there and cannot be started did not fail to be created.
func TestWhatFailedIsCalledByItsName(t *testing.T) {
	job := made("job", "OnFailure", "c")
	j := evaluator{starts: failedStarts(job, "c", "RunContainerError")}
	o := j.look([]view{now(job, v1.PodPending, states{"c": waiting("RunContainerError", "")})})
	if o == nil || !strings.Contains(o.Text, "job/c failed to be started 5 times in a row") {
		t.Errorf("it ends with %+v", o)
	}
}
