//go:build e2e

package e2e

import "monopod/agent/e2e/rig"

// goldenDepartures are, by version of a runtime, what it does in another way than the containerd of
// the recordings, whatever agent it serves, and so what people see of pods there. They are written
// as in differences.md: what is not here fails, and a line that stands for no difference, too. What
// stories have to know of a runtime is a method of rig.Runtime.
var goldenDepartures = map[string]string{rig.CRIO: `
    init-ok: cgroup\[i[12]\]\..*  # a container that has ended keeps its cgroup until it is removed
    init-bigger|sidecar|sidecar-sum: cgroup\[i\]\..*  # likewise
    one-of-two-exits: cgroup\[a\]\..*  # likewise
    bad-command: ran|status\.(phase|cond\[(Ready|ContainersReady|PodReadyToStartContainers)\]|containerStatuses\[main\]\.(imageID|ready|started|state))  # a command that is not there fails the creation of the container, not its start
    run-as-pod: status\.containerStatuses\[main\]\.user\.linux\.supplementalGroups  # they come in another order
`}
