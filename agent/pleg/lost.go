package pleg

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/cri"
	"monopod/manifests"
)

// processes are the first processes of the containers that the runtime lists as running. CRI-O goes
// on listing one as running whose conmon was killed before its process ended: conmon alone tells
// CRI-O of that end. The container is lost when its process is gone at lostAfter looks in a row.
//
// No container is taken for lost in doubt: its process must have been seen in its cgroup before.
// So it was one that this agent can see, and no machine of which the container is a part (Kata),
// nor a number of another pid namespace.
type processes struct {
	pidOf func(ctx context.Context, id string) (int, error)

	proc string              // see Watch.Proc; of the goroutine that looks
	all  map[string]*process // by container id; likewise

	mu   sync.Mutex
	lost map[string]bool // by container id
}

// process is the first process of a container.
type process struct {
	pid  int  // 0: the runtime does not report it
	own  bool // it was seen in the container's cgroup, or in one below
	gone int  // at so many looks in a row
}

// lostAfter is at how many looks in a row a process is gone before its container is lost. In
// between a runtime that works reports its end.
const lostAfter = 2

// watchProcesses looks for lost containers until ctx ends. It costs a small file per container and
// look, and only on CRI-O: containerd notices the end of its shims.
func (w *Watch) watchProcesses(ctx context.Context) {
	if w.Runtime() != cri.CRIO {
		return
	}
	w.processes.proc = w.Proc
	tick := time.NewTicker(HealthEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, pod := range w.processes.look(ctx, w.Lister.index.all()) {
				w.Workers.Wake(pod)
			}
		}
	}
}

// Lost reports whether a container has no process any more although the runtime lists it as
// running. Any goroutine may call it.
func (w *Watch) Lost(id string) bool {
	w.processes.mu.Lock()
	defer w.processes.mu.Unlock()
	return w.processes.lost[id]
}

// MarkLost makes the state of running containers that are lost unknown. lost tells of a container's
// id whether it is.
func (i *Instance) MarkLost(lost func(id string) bool) {
	for k := range i.Containers {
		if n := &i.Containers[k]; n.Running() && lost(n.ID) {
			n.State, n.Lost = rt.ContainerState_CONTAINER_UNKNOWN, true
		}
	}
}

// look looks once at the processes of running containers, and returns the pods that have lost ones.
func (p *processes) look(ctx context.Context, pods map[manifests.Key]*Listed) (wake []manifests.Key) {
	lost, running := map[string]bool{}, map[string]bool{}
	for key, pod := range pods {
		for _, c := range pod.Containers {
			if c.State != rt.ContainerState_CONTAINER_RUNNING {
				continue
			}
			running[c.Id] = true
			if p.isLost(ctx, c.Id) {
				lost[c.Id] = true
				wake = append(wake, key)
			}
		}
	}
	maps.DeleteFunc(p.all, func(id string, _ *process) bool { return !running[id] })
	p.mu.Lock()
	p.lost = lost
	p.mu.Unlock()
	return wake
}

// isLost looks at one container.
func (p *processes) isLost(ctx context.Context, id string) bool {
	one := p.all[id]
	if one == nil {
		pid, err := p.pidOf(ctx, id)
		if err != nil {
			return false // it is asked again at the next look
		}
		one = &process{pid: pid}
		p.all[id] = one
	}
	switch {
	case one.pid <= 0:
	case !p.ended(one.pid):
		one.gone, one.own = 0, one.own || p.isIn(one.pid, id)
	case one.own:
		one.gone++
	}
	return one.gone >= lostAfter
}

// isIn reports whether a process is in the cgroup of a container, or in one below: the runtime puts
// the container's id into its name.
func (p *processes) isIn(pid int, id string) bool {
	text, _ := os.ReadFile(p.file(pid, "cgroup"))
	return strings.Contains(string(text), id)
}

// ended reports whether a process has ended: it is gone, or a zombie without other threads. It is
// false if that cannot be read.
func (p *processes) ended(pid int) bool {
	text, err := os.ReadFile(p.file(pid, "stat"))
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat(filepath.Join(p.proc, "self"))
		return err == nil
	}
	behind := text[bytes.LastIndexByte(text, ')')+1:] // the name, which may have any bytes
	if err != nil || !bytes.HasPrefix(behind, []byte(" Z")) {
		return false
	}
	threads, err := os.ReadDir(p.file(pid, "task"))
	return err == nil && len(threads) <= 1
}

func (p *processes) file(pid int, name string) string {
	return filepath.Join(p.proc, strconv.Itoa(pid), name)
}
