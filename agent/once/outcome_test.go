package once

import (
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/agent/status"
)

// made returns a pod as it is asked for; containers are "name" or "name=policy".
func made(name string, policy v1.RestartPolicy, containers ...string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "default", name+"-n", "1"
	p.Spec.NodeName, p.Spec.RestartPolicy = "n", policy
	for _, c := range containers {
		name, own, ok := strings.Cut(c, "=")
		made := v1.Container{Name: name, Image: "img:1"}
		if ok {
			made.RestartPolicy = new(v1.ContainerRestartPolicy(own))
		}
		p.Spec.Containers = append(p.Spec.Containers, made)
	}
	return p
}

// now returns what is reported of a pod, with states by container.
func now(p *v1.Pod, phase v1.PodPhase, states map[string]v1.ContainerState) view {
	st := &v1.PodStatus{Phase: phase, Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}}
	for _, c := range p.Spec.Containers {
		st.ContainerStatuses = append(st.ContainerStatuses, v1.ContainerStatus{Name: c.Name, Image: c.Image, State: states[c.Name]})
	}
	for _, c := range p.Spec.InitContainers {
		st.InitContainerStatuses = append(st.InitContainerStatuses, v1.ContainerStatus{Name: c.Name, Image: c.Image, State: states[c.Name]})
	}
	return viewOf(p, st)
}

// viewOf is a pod with what is reported of it.
func viewOf(p *v1.Pod, st *v1.PodStatus) view {
	reported := p.DeepCopy()
	reported.Status = *st
	return view{p, reported, &reported.Status}
}

type states = map[string]v1.ContainerState

func exited(id string, code int32) v1.ContainerState {
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: id, ExitCode: code, Reason: "Error"}}
}

func waiting(reason, message string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
}

var runs = v1.ContainerState{Running: &v1.ContainerStateRunning{}}

func refused(p *v1.Pod, reason, message string) view {
	return viewOf(p, &v1.PodStatus{Phase: v1.PodFailed, Reason: reason, Message: status.RefusedPrefix + message})
}

func after(p *v1.Pod, names string) *v1.Pod {
	p.Annotations = map[string]string{"monopod.start-after": names}
	return p
}

func TestTheOutcome(t *testing.T) {
	job, other := made("job", "Never", "c"), made("other", "OnFailure", "c")
	db := made("db", "Always", "c")
	app := made("app", "Always", "web", "test")
	mixed := made("mixed", "Never", "web", "test")
	ownWay := made("own", "Never", "c=Always")
	later := after(made("later", "Never", "c"), "job")
	circle := after(made("circle", "Never", "c"), "later2")
	later2 := after(made("later2", "Never", "c"), "circle")
	mid, last := after(made("mid", "Never", "c"), "db"), after(made("last", "Never", "c"), "mid,default/db")
	held := states{"c": waiting("WaitingForPods", "waits for default/job to be ready")}
	initial := made("init", "Never", "c")
	initial.Spec.InitContainers = []v1.Container{{Name: "i", Image: "img:1"}}
	noCommand := func(p *v1.Pod, message string) []view {
		return []view{now(p, v1.PodPending, states{"c": waiting("CreateContainerError", "CreateContainer default/x/c: container create failed: "+message)})}
	}
	noSandbox := func(p *v1.Pod, message string) view {
		v := now(p, v1.PodPending, states{"c": waiting("ContainerCreating", "")})
		v.status.Conditions = []v1.PodCondition{{Type: v1.PodReadyToStartContainers, Status: v1.ConditionFalse, Reason: "FailedCreatePodSandBox", Message: message}}
		return v
	}
	shares, sharesNever := made("shares", "OnFailure", "c"), made("shares-never", "Never", "c")
	for _, p := range []*v1.Pod{shares, sharesNever} {
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "tools", MountPath: "/tools"}}
	}
	runc := "runc create failed: unable to start container process: exec: "
	rows := []struct {
		name string
		all  []view
		from *Chosen
		want string // outcome and code, "" while it goes on
	}{
		{"nothing is reported yet", []view{{pod: job}}, nil, ""},
		{"a job runs", []view{now(job, v1.PodRunning, states{"c": runs})}, nil, ""},
		{"a job has succeeded", []view{now(job, v1.PodSucceeded, states{"c": exited("1", 0)})}, nil, "succeeded 0"},
		{"a job has failed", []view{now(job, v1.PodFailed, states{"c": exited("1", 7)})}, nil, "failed 7"},
		{"one of two goes on", []view{now(job, v1.PodFailed, states{"c": exited("1", 7)}), now(other, v1.PodRunning, states{"c": runs})}, nil, ""},
		{"a service goes on", []view{now(job, v1.PodSucceeded, states{"c": exited("1", 0)}), now(db, v1.PodRunning, states{"c": runs})}, nil, "succeeded 0"},
		{"only services", []view{now(db, v1.PodRunning, states{"c": runs})}, nil, ""},
		{"a container with a policy of its own makes a service", []view{now(ownWay, v1.PodRunning, states{"c": runs})}, nil, ""},
		{"a retry", []view{now(other, v1.PodRunning, states{"c": waiting("CrashLoopBackOff", "back-off 10s restarting failed container=c")})}, nil, ""},
		{"an init container failed", []view{now(initial, v1.PodFailed, states{"i": exited("1", 5), "c": waiting("PodInitializing", "")})}, nil, "failed 5"},
		{"a deadline whose containers ended well", []view{func() view {
			v := now(job, v1.PodFailed, states{"c": exited("1", 0)})
			v.status.Reason = "DeadlineExceeded"
			return v
		}()}, nil, "failed 1"},
		{"the chosen pod", []view{now(job, v1.PodFailed, states{"c": exited("1", 7)}), now(other, v1.PodSucceeded, states{"c": exited("2", 0)})}, &Chosen{Pod: other}, "succeeded 0"},
		{"the chosen container of a service", []view{now(app, v1.PodRunning, states{"web": runs, "test": exited("1", 6)})}, &Chosen{app, "test"}, "failed 6"},
		{"the chosen container of a job whose other one runs on", []view{now(mixed, v1.PodRunning, states{"web": runs, "test": exited("1", 0)})}, &Chosen{mixed, "test"}, "succeeded 0"},
		{"other jobs are waited for", []view{now(mixed, v1.PodRunning, states{"web": runs, "test": exited("1", 0)}), now(job, v1.PodRunning, states{"c": runs})}, &Chosen{mixed, "test"}, ""},
		{"the chosen one is tried again", []view{now(other, v1.PodRunning, states{"c": exited("1", 1)})}, &Chosen{other, "c"}, ""},
		{"the chosen one never began", []view{now(initial, v1.PodFailed, states{"i": exited("1", 5), "c": waiting("PodInitializing", "")})}, &Chosen{initial, "c"}, "failed 5"},
		{"a pod that waits for one that failed", []view{now(job, v1.PodFailed, states{"c": exited("1", 7)}), now(later, v1.PodPending, held)}, nil, "failed 7"},
		{"a pod that waits for one that runs", []view{now(job, v1.PodRunning, states{"c": runs}), now(later, v1.PodPending, held)}, nil, ""},
		{"pods that wait in a circle", []view{now(circle, v1.PodPending, held), now(later2, v1.PodPending, held)}, nil, "error 125 shaky"},
		{"pods that wait for one that waits for a service", []view{now(last, v1.PodPending, held), now(mid, v1.PodPending, held), now(db, v1.PodRunning, states{"c": runs})}, nil, ""},
		{"an invalid image name", []view{now(job, v1.PodPending, states{"c": waiting("InvalidImageName", "x")})}, nil, "error 125 shaky"},
		{"an image that cannot be pulled", []view{now(job, v1.PodPending, states{"c": waiting("ErrImagePull", "x")})}, nil, ""},
		{"a command that runc does not find", noCommand(job, runc+`"nosuch": executable file not found in $PATH`), nil, "failed 127 shaky"},
		{"a command that crun does not find", noCommand(other, "executable file `nosuch` not found in $PATH: No such file or directory"), nil, "failed 127 shaky"},
		{"a command of a service that is not there", noCommand(db, runc+`"/nosuch": stat /nosuch: no such file or directory`), nil, "failed 127 shaky"},
		{"a command that cannot be executed", noCommand(job, runc+`"/etc/passwd": permission denied`), nil, "failed 126 shaky"},
		{"a command that may come to be in a volume", noCommand(shares, runc+`"/tools/x": stat /tools/x: no such file or directory`), nil, ""},
		{"a command in a volume of a container that is not restarted", noCommand(sharesNever, runc+`"/tools/x": stat /tools/x: no such file or directory`), nil, "failed 127 shaky"},
		{"a volume that may come", noCommand(job, `runc create failed: unable to start container process: error during container init: error mounting "/data" to rootfs at "/data": stat /data: no such file or directory`), nil, ""},
		{"a device that may come", noCommand(job, `lstat /dev/fuse: no such file or directory`), nil, ""},
		{"an unknown user", noCommand(job, "unable to find user app: no matching entries in passwd file"), nil, "error 125 shaky"},
		{"too small a memory limit", noCommand(job, "set memory limit 1048576 too low; should be at least 12582912 bytes"), nil, "error 125 shaky"},
		{"too small a memory limit of the pod", []view{noSandbox(job, "Failed to create pod sandbox: pod set memory limit 1048576 too low; should be at least 12582912")}, nil, "error 125 shaky"},
		{"a sandbox that may come to be", []view{noSandbox(job, `Failed to create pod sandbox: failed to find plugin "bridge" in path [/opt/cni/bin]: no such file or directory`)}, nil, ""},
		{"a back-off that tells of a command", []view{now(other, v1.PodRunning, states{"c": waiting("CrashLoopBackOff", runc+`"nosuch": executable file not found in $PATH`)})}, nil, ""},
		{"a refusal that nothing mends", []view{refused(job, "NodeAffinity", "no")}, nil, "error 125 shaky"},
		{"a refusal that another's end mends", []view{refused(job, "OutOfcpu", "no"), now(other, v1.PodRunning, states{"c": runs})}, nil, ""},
		{"a refusal that a service stands against", []view{refused(job, "OutOfcpu", "no"), now(db, v1.PodRunning, states{"c": runs})}, nil, "error 125 shaky"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := spell((&evaluator{from: row.from}).look(row.all)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func spell(o *outcome) string {
	if o == nil {
		return ""
	}
	text := o.End + " " + strconv.Itoa(o.Code)
	if o.Shaky {
		text += " shaky"
	}
	return text
}

func TestTheFirstThatFailedCounts(t *testing.T) {
	a, b := made("a", "Never", "c"), made("b", "Never", "c")
	j := evaluator{}
	j.look([]view{now(a, v1.PodRunning, states{"c": runs}), now(b, v1.PodFailed, states{"c": exited("b1", 4)})})
	o := j.look([]view{now(a, v1.PodFailed, states{"c": exited("a1", 3)}), now(b, v1.PodFailed, states{"c": exited("b1", 4)})})
	if o == nil || o.Code != 4 || !strings.Contains(o.Text, "pod b failed") || !strings.Contains(o.Text, "pod a failed") {
		t.Errorf("%+v", o)
	}
}

func TestReadiness(t *testing.T) {
	web, job := made("web", "Always", "c"), made("job", "Never", "c")
	ready := now(web, v1.PodRunning, states{"c": runs})
	j := evaluator{ready: true}
	if o := j.look([]view{ready}); o != nil {
		t.Errorf("before: %+v", o)
	}
	ready.status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	if got := spell(j.look([]view{ready, now(job, v1.PodSucceeded, states{"c": exited("1", 0)})})); got != "ready 0" {
		t.Error(got)
	}
	if got := spell(j.look([]view{ready, now(job, v1.PodFailed, states{"c": exited("2", 3)})})); got != "failed 3" {
		t.Error(got)
	}
}

func TestChoose(t *testing.T) {
	job, two := made("job", "Never", "c"), made("two", "Always", "web", "test")
	one := made("one", "Always", "c")
	pods := []*v1.Pod{job, two, one}
	for _, row := range []struct{ name, pod, container, err string }{
		{"job", "job-n", "", ""},
		{"job-n", "job-n", "", ""},
		{"default/job", "job-n", "", ""},
		{"job/c", "job-n", "c", ""},
		{"default/two/test", "two-n", "test", ""},
		{"one", "one-n", "c", ""},
		{"two", "", "", "two/web"},
		{"job/d", "", "", "there is job/c, two/web, two/test, one/c"},
		{"jbo", "", "", "there is job/c"},
	} {
		got, err := Choose(pods, row.name)
		switch {
		case row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)):
			t.Errorf("%s: error %v", row.name, err)
		case row.err == "" && (err != nil || got.Pod.Name != row.pod || got.Container != row.container):
			t.Errorf("%s: %+v, %v", row.name, got, err)
		}
	}
}

// One of which the runtime does not say when it ended did not end in 1970.
func TestAnEndWithoutATimeIsNotTheFirst(t *testing.T) {
	first, unknown := made("first", "Never", "c"), made("unknown", "Never", "c")
	at := func(id string, code int32, t metav1.Time) states {
		s := exited(id, code)
		s.Terminated.FinishedAt = t
		return states{"c": s}
	}
	j := &evaluator{}
	one := now(first, v1.PodFailed, at("1", 5, metav1.Unix(20, 0)))
	j.look([]view{one, now(unknown, v1.PodRunning, states{"c": runs})})
	if got := spell(j.look([]view{one, now(unknown, v1.PodFailed, at("2", 4, metav1.Unix(0, 0)))})); got != "failed 5" {
		t.Errorf("got %q, want the code of the one that was seen first", got)
	}
}

func TestTheFirstFailureIsTheOneThatEndedFirst(t *testing.T) {
	later, first := made("later", "Never", "c"), made("first", "Never", "c")
	at := func(id string, code int32, second int64) states {
		s := exited(id, code)
		s.Terminated.FinishedAt = metav1.Unix(second, 0)
		return states{"c": s}
	}
	j := &evaluator{}
	seen := now(later, v1.PodFailed, at("1", 5, 20))
	if o := j.look([]view{seen, now(first, v1.PodRunning, states{"c": runs})}); o != nil {
		t.Fatalf("it is over with %q while a pod runs", spell(o))
	}
	both := []view{seen, now(first, v1.PodFailed, at("2", 4, 10))}
	if got := spell(j.look(both)); got != "failed 4" {
		t.Errorf("got %q, want the code of the one that ended at 10", got)
	}
}
