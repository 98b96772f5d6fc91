package main

import "fmt"

// counts says what differs from what pods should have on the machine: $1 pods that run,
// with a container each and a network of their own, and $2 pods that ended. Of each
// pod the last dead container may stay, with its sandbox, for its logs. A container may have
// a shim of its own: containerd 1.6 starts one where the sandbox's does not answer soon. An
// address may be of no sandbox: the CNI plugin does not sync its notes, so that after a power
// cut they are empty, nor does containerd know a sandbox that was being created.
const counts = `set -- %d %d
bad=
is() { [ "$2" = "$3" ] || { echo "$1: $2, want $3"; bad=1; }; }
cd /var/lib/cni/networks/pods
is addresses "$(for s in $(ctr -n k8s.io tasks ls -q); do grep -l $s 10.*; done | wc -l)" $1
is 'addresses of removed sandboxes' "$(journalctl -b -u containerd -o cat |
	sed -n 's/.*RemovePodSandbox [^0-9a-f]*\([0-9a-f]\{64\}\).* returns.*/\1/p' | grep -lFf - 10.* | wc -l)" 0
is 'network namespaces' "$(ls /run/netns | wc -l)" $1
is interfaces "$(ls /sys/class/net | grep -c ^veth)" $1
is 'shims that serve nothing' "$(comm -13 <(ctr -n k8s.io tasks ls | awk '$3 == "RUNNING" {print $1}' | sort) \
	<(pgrep -a containerd-shim | sed 's/.* -id \([0-9a-f]*\).*/\1/' | sort) | wc -l)" 0
is mounts "$(grep -c ' /run/containerd/' /proc/self/mountinfo)" $((3 * $1))
is cgroups "$(find /sys/fs/cgroup/kubepods* -type d -regex '.*/\(kubepods-\([a-z]*-\)?\)?pod[0-9a-f]+\(.slice\)?' | wc -l)" $1
is checkpoints "$(ls /var/lib/monopod/pods | wc -l)" $(($1 + $2))
is 'folders of logs' "$(ls /var/log/pods | wc -l)" $(($1 + $2))
n=$(ctr -n k8s.io containers ls -q | wc -l)
[ $n -le $((4 * $1 + 2 * $2)) ] || { echo "$n containers and sandboxes"; bad=1; }
[ -z "$bad" ]`

// onlyPods waits until the machine has of so many pods what it should, and of others
// nothing: no address, mount, network namespace or cgroup stays behind.
func (b *box) onlyPods(run, ended int) error { return b.until(fmt.Sprintf(counts, run, ended)) }
