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
is addresses "$(for s in $(boxes); do grep -l $s 10.*; done | wc -l)" $1
is 'addresses of removed sandboxes' "$(removed | grep -lFf - 10.* | wc -l)" 0
is 'network namespaces' "$(ls /run/netns | wc -l)" $1
is interfaces "$(ls /sys/class/net | grep -c ^veth)" $1
is 'monitors that serve nothing' "$(comm -13 <(running | cut -d ' ' -f 1 | sort) <(watched | sort) | wc -l)" 0
is mounts "$(grep -c "$mounts" /proc/self/mountinfo)" $((3 * $1))
is cgroups "$(` + podCgroups + `)" $1
is checkpoints "$(ls /var/lib/monopod/pods | wc -l)" $(($1 + $2))
is 'folders of logs' "$(ls /var/log/pods | wc -l)" $(($1 + $2))
n=$(known | wc -l)
[ $n -le $((4 * $1 + 2 * $2)) ] || { echo "$n containers and sandboxes"; bad=1; }
[ -z "$bad" ]`

// podCgroups is a script that counts the cgroups of pods, of both drivers.
const podCgroups = `find /sys/fs/cgroup/kubepods* -type d -regex '.*/\(kubepods-\([a-z]*-\)?\)?pod[0-9a-f]+\(.slice\)?' | wc -l`

// onlyPods waits until the machine has of so many pods what it should, and of others
// nothing: no address, mount, network namespace or cgroup stays behind.
func (b *box) onlyPods(run, ended int) error { return b.until(fmt.Sprintf(counts, run, ended)) }
