#!/bin/sh
# usage: MONOPOD_DOCS_ROOT=CHECKOUT machine.sh DIR NAME COMMAND...
#
# Runs COMMAND on a machine of its own called NAME: processes, network, mounts and cgroups of its
# own, and a disk that begins as that of this machine. What COMMAND writes is forgotten, and what it
# starts ends with it. DIR is empty and on a real file system, as containerd's layers must be; it is
# the machine's /tmp, /var/lib/containerd and /var/lib/monopod. CHECKOUT, wherever it is, is its
# /srv/monopod.
set -e
dir=$1 name=$2
cgroup=docs-of-monopod-$$

if [ "$3" != inside ]; then
	shift 2
	remove() {
		for tree in /sys/fs/cgroup/*/ /sys/fs/cgroup/; do
			[ ! -d "$tree/$cgroup" ] || find "$tree/$cgroup" -depth -type d -exec rmdir {} +
		done
	}
	trap remove EXIT
	trap 'exit 130' INT TERM
	for tree in /sys/fs/cgroup/*/ /sys/fs/cgroup/; do
		[ -e "$tree/cgroup.procs" ] || continue
		mkdir "$tree/$cgroup"
		for file in cpuset.cpus cpuset.mems; do # empty ones hold no process
			[ ! -e "$tree/$cgroup/$file" ] || cat "$tree/$file" >"$tree/$cgroup/$file"
		done
	done
	code=0
	sh -c '
		for tree in /sys/fs/cgroup/*/ /sys/fs/cgroup/; do
			[ ! -e "$tree/$1/cgroup.procs" ] || echo 0 >"$tree/$1/cgroup.procs"
		done
		shift
		exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child --propagation private "$@"
	' sh "$cgroup" sh "$0" "$dir" "$name" inside "$cgroup" "$@" || code=$?
	exit $code
fi
cgroup=$4
shift 4

# The disk: what is written goes to memory.
mkdir "$dir/machine"
mount -t tmpfs tmpfs "$dir/machine"
cd "$dir/machine"
mkdir upper work root checkout checkout-work
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay root
mkdir -p root/srv/monopod
mount -t overlay -o "lowerdir=$MONOPOD_DOCS_ROOT,upperdir=checkout,workdir=checkout-work" overlay root/srv/monopod
mount -t proc proc root/proc
mount --rbind /dev root/dev
mount --rbind /sys root/sys
for tree in /sys/fs/cgroup/*/ /sys/fs/cgroup/; do
	[ ! -d "$tree$cgroup" ] || mount --bind "$tree$cgroup" "root$tree"
done
mount -t tmpfs -o mode=755 tmpfs root/run
for place in tmp var/lib/containerd var/lib/monopod; do
	mkdir -p "$dir/$place" "root/$place"
	mount --bind "$dir/$place" "root/$place"
done
chmod 1777 root/tmp
mkdir -p root/mnt/old
pivot_root root root/mnt/old
cd /
umount --lazy /mnt/old

# The network: nothing is behind it.
hostname "$name"
ip link set lo up
ip link add eth0 type veth peer name far-end-of-eth0
ip link set far-end-of-eth0 up
ip addr add 192.0.2.7/24 dev eth0
ip link set eth0 up
ip route add default via 192.0.2.1
echo "192.0.2.7 $name" >>/etc/hosts

# Not exec: who is process 1 takes the processes that have lost their parent.
code=0
"$@" || code=$?
exit $code
