// Package agent is the spine of monopod: it wires the rooms below together and
// runs the sync loop.
//
// Imports run downhill; house_test.go holds the table.
//
//	podspec      a v1.Pod -> sandbox and container configs, cgroup values (pure)
//	checkpoint   what survives on disk: the root dir and its lock, pod checkpoints
//	pleg         what the runtime has: relist, event stream, is it up
//	node         what the machine is, has and lacks; pods' cgroups; the Node report
//	admission    may this pod run here: allocations, ports, uids, start order
//	plan         facts of one pod -> actions, each with a cause and a reason (pure)
//	podstatus    the same facts -> v1.PodStatus (pure)
//	gc           what no pod owns any more
//	worker       one goroutine per pod name: observe, plan, apply
//	agent        agent.go (wiring), sync.go (the loop), settings.go, once.go, reload.go
//
// A file changes -> manifests.Source offers one complete Snapshot -> the sync loop
// admits pods and tells each worker its desired pod (worker.Update) -> the worker
// observes its pod (pleg), plans (plan.Make) and applies -> what became of it goes
// to status.Store, which files, HTTP and commands read. A worker tells the loop
// what it must know by one channel of worker.State. Events and ticks only wake:
// losing one costs time, never truth.
package agent
