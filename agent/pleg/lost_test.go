package pleg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/manifests"
)

// The container of these tests.
const (
	lostID  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	lostPID = 4711
)

// kernel is a folder like /proc.
type kernel struct {
	*testing.T
	dir string
}

func newKernel(t *testing.T) *kernel {
	k := &kernel{t, t.TempDir()}
	k.write("self/stat", "")
	return k
}

func (k *kernel) write(file, text string) {
	path := filepath.Join(k.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		k.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		k.Fatal(err)
	}
}

// runs has the container's process run in a cgroup, in a state, with so many threads.
func (k *kernel) runs(cgroup, state string, threads int) {
	k.write(fmt.Sprintf("%d/cgroup", lostPID), cgroup)
	k.write(fmt.Sprintf("%d/stat", lostPID), fmt.Sprintf("%d (a) Z (b) %s 1 %d", lostPID, state, lostPID))
	for n := range threads {
		k.write(fmt.Sprintf("%d/task/%d/stat", lostPID, lostPID+n), "")
	}
}

func (k *kernel) ends() {
	if err := os.RemoveAll(filepath.Join(k.dir, strconv.Itoa(lostPID))); err != nil {
		k.Fatal(err)
	}
}

// looker returns processes of that kernel, of which the runtime reports pid.
func (k *kernel) looker(pid int) *processes {
	return &processes{proc: k.dir, all: map[string]*process{}, pidOf: func(context.Context, string) (int, error) { return pid, nil }}
}

// listed are the pods with the container in a state.
func listed(state rt.ContainerState) map[manifests.Key]*Listed {
	return map[manifests.Key]*Listed{{Namespace: "default", Name: "web"}: {Containers: []*rt.Container{{Id: lostID, State: state}}}}
}

const unified = "0::/kubepods/pod1/crio-" + lostID + "\n"

func TestAContainerIsLostWhenItsProcessIsGoneTwice(t *testing.T) {
	alive := func(cgroup string) func(*kernel) { return func(k *kernel) { k.runs(cgroup, "S", 1) } }
	nothing := func(*kernel) {}
	for name, row := range map[string]struct {
		pid   int
		looks []func(*kernel) // what happens before each
		want  bool            // after the last
	}{
		"it runs":                                          {lostPID, []func(*kernel){alive(unified), nothing, nothing}, false},
		"its process is gone once":                         {lostPID, []func(*kernel){alive(unified), (*kernel).ends}, false},
		"its process is gone twice":                        {lostPID, []func(*kernel){alive(unified), (*kernel).ends, nothing}, true},
		"of cgroup v1":                                     {lostPID, []func(*kernel){alive("9:pids:/kubepods/pod1/crio-" + lostID + "\n0::/\n"), (*kernel).ends, nothing}, true},
		"with the systemd driver":                          {lostPID, []func(*kernel){alive("0::/kubepods.slice/kubepods-pod1.slice/crio-" + lostID + ".scope\n"), (*kernel).ends, nothing}, true},
		"seen from another cgroup namespace":               {lostPID, []func(*kernel){alive("0::/../../kubepods/pod1/crio-" + lostID + "\n"), (*kernel).ends, nothing}, true},
		"in a cgroup below":                                {lostPID, []func(*kernel){alive("0::/kubepods/pod1/crio-" + lostID + "/init/sub\n"), (*kernel).ends, nothing}, true},
		"a process that went to another cgroup, and lives": {lostPID, []func(*kernel){alive(unified), alive("0::/elsewhere\n"), nothing, nothing}, false},
		"a process that came again":                        {lostPID, []func(*kernel){alive(unified), (*kernel).ends, alive(unified), (*kernel).ends}, false},
		"a machine of which it is a part":                  {lostPID, []func(*kernel){alive("0::/kubepods/pod1/kata_overhead\n"), (*kernel).ends, nothing, nothing}, false},
		"a process that was never seen":                    {lostPID, []func(*kernel){nothing, nothing, nothing}, false},
		"the runtime reports no process":                   {0, []func(*kernel){alive(unified), (*kernel).ends, nothing}, false},
		"a zombie":                                         {lostPID, []func(*kernel){alive(unified), func(k *kernel) { k.runs(unified, "Z", 1) }, nothing}, true},
		"a process whose first thread alone has ended":     {lostPID, []func(*kernel){alive(unified), func(k *kernel) { k.runs(unified, "Z", 2) }, nothing}, false},
		"nothing can be read": {lostPID, []func(*kernel){alive(unified), func(k *kernel) {
			k.ends()
			os.RemoveAll(filepath.Join(k.dir, "self"))
		}, nothing}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t)
			p := k.looker(row.pid)
			var wake []manifests.Key
			for _, before := range row.looks {
				before(k)
				wake = p.look(t.Context(), listed(rt.ContainerState_CONTAINER_RUNNING))
			}
			if p.lost[lostID] != row.want || (len(wake) == 1) != row.want {
				t.Errorf("lost: %v, wakes %v", p.lost, wake)
			}
		})
	}
}

func TestTheRuntimeIsAskedForAProcessOnce(t *testing.T) {
	k := newKernel(t)
	p, asked := k.looker(lostPID), 0
	err := errors.New("the runtime is busy")
	p.pidOf = func(context.Context, string) (int, error) {
		asked++
		return lostPID, err
	}
	look := func() { p.look(t.Context(), listed(rt.ContainerState_CONTAINER_RUNNING)) }
	look()
	err = nil
	look()
	look()
	if asked != 2 {
		t.Errorf("asked %d times, of which the first failed", asked)
	}
}

func TestWhatTheRuntimeKnowsToHaveEndedIsNotLost(t *testing.T) {
	k := newKernel(t)
	p := k.looker(lostPID)
	k.runs(unified, "S", 1)
	running := listed(rt.ContainerState_CONTAINER_RUNNING)
	p.look(t.Context(), running)
	k.ends()
	p.look(t.Context(), running)
	p.look(t.Context(), listed(rt.ContainerState_CONTAINER_EXITED))
	if len(p.lost)+len(p.all) > 0 {
		t.Errorf("lost %v, known %v", p.lost, p.all)
	}
}

func TestTheStateOfWhatIsLostIsUnknown(t *testing.T) {
	i := Instance{Containers: []Container{
		{ID: "lost", State: rt.ContainerState_CONTAINER_RUNNING},
		{ID: "lost", State: rt.ContainerState_CONTAINER_EXITED},
		{ID: "runs", State: rt.ContainerState_CONTAINER_RUNNING},
	}}
	i.MarkLost(func(id string) bool { return id == "lost" })
	want := []rt.ContainerState{rt.ContainerState_CONTAINER_UNKNOWN, rt.ContainerState_CONTAINER_EXITED, rt.ContainerState_CONTAINER_RUNNING}
	for k, n := range i.Containers {
		if n.State != want[k] || n.Lost != (k == 0) {
			t.Errorf("container %d is %s, lost: %v", k, n.State, n.Lost)
		}
	}
}
