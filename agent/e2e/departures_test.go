//go:build e2e

package e2e

import "monopod/agent/e2e/rig"

// place is a version of a runtime on a machine like that of a recording.
type place struct{ runtime, recording string }

// goldenDepartures are what a runtime does in another way than the containerd of a recording,
// whatever agent it serves, and so what people see of pods there. They are written as in
// differences.md: what is not here fails, and a line that stands for no difference, too. What stories
// have to know of a runtime is a method of rig.Runtime.
var goldenDepartures = map[place]string{
	{rig.CRIO, "cgroup1-cgroupfs"}: `
    init-ok: cgroup\[i[12]\]\..*  # a container that has ended keeps its cgroup until it is removed
    init-bigger|sidecar|sidecar-sum: cgroup\[i\]\..*  # likewise
    one-of-two-exits: cgroup\[a\]\..*  # likewise
    bad-command: ran|status\.(phase|cond\[(Ready|ContainersReady|PodReadyToStartContainers)\]|containerStatuses\[main\]\.(imageID|ready|started|state))  # a command that is not there fails the creation of the container, not its start
    run-as-pod: status\.containerStatuses\[main\]\.user\.linux\.supplementalGroups  # they come in another order
`,
	{rig.CRIO, "cgroup2-systemd"}: `
    .*: cgroup\[.*\]\.pids\.max  # its scopes have TasksMax=infinity, where systemd's default holds those of containerd
    run-as-pod: status\.containerStatuses\[main\]\.user\.linux\.supplementalGroups  # they come in another order
`,
}

// crunDepartures are what crun does besides, by recording.
var crunDepartures = map[string]string{
	"cgroup2-systemd": `
    .*: cgroup\[(main|[abis])\]\.(cpu\.weight|cgroup\.controllers)  # its weight for 1 CPU is 100, that of runc 1.1 is 39; once a container lacked the controller rdma
`,
}
