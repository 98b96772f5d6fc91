package main

import (
	"fmt"
	"time"

	"monopod/agent/e2e/rig"
)

// trial is one thing that must hold on a machine with systemd.
type trial struct {
	name string
	when when
	on   hardware
	run  func(b *box) error
	only only
}

// when says in which runs a trial takes part.
type when int

const (
	everyRun when = iota
	longRun       // not in the short run
	ifNamed       // where TRIALS names it: it measures
)

// only says why a trial does not run on each runtime.
type only string

const (
	anyRuntime        only = ""
	noRuntime         only = "they are the same on any runtime (make test-vm runs them)"
	ownRuntime        only = "the agent starts a containerd of its own (make test-vm runs them)"
	ofContainerdAlone only = "they are about containerd (make test-vm runs them)"
	ofCRIOAlone       only = "they are about CRI-O (make test-vm CRIO=DIR runs them)"
)

// leftOut says why a trial does not run; "": it does.
func (t trial) leftOut(onCRIO, named, short bool) string {
	switch {
	case t.only != anyRuntime && (t.only == ofCRIOAlone) != onCRIO:
		return string(t.only)
	case short && t.when == longRun:
		return "they take long (make test-vm runs them)"
	case !named && t.when == ifNamed:
		return "they measure (make test-vm TRIALS=Bench)"
	}
	return ""
}

// trials run in this order, on one machine as long as they pass: those that change the
// runtime are the last, and those that want the same hardware, which takes a boot, stand
// together.
var trials = []trial{
	{"Package", everyRun, usual, isReproducible, noRuntime},
	{"Unit", everyRun, usual, tellsSystemd, anyRuntime},
	{"UnitWithoutRuntime", longRun, usual, isReadyWithoutRuntime, anyRuntime},
	{"MountsReachPods", longRun, usual, mountsReachPods, anyRuntime},
	{"Killed", everyRun, usual, survivesKill, anyRuntime},
	{"Stuck", longRun, usual, isRestartedWhenStuck, anyRuntime},
	{"Upgraded", everyRun, usual, upgrades, anyRuntime},
	{"RemovedAndPurged", longRun, usual, isRemovedAndPurged, anyRuntime},
	{"Rebooted", everyRun, usual, comesBackAfterReboot, anyRuntime},
	{"PowerCuts", everyRun, usual, outlivesPowerCuts, ofCRIOAlone},
	{"Stick", longRun, usual, bootsFromAStick, anyRuntime},
	{"Changes", longRun, usual, followsItsMachine, anyRuntime},
	{"Shutdown", everyRun, usual, stopsBeforeShutdown, anyRuntime},
	{"Swap", longRun, usual, toleratesSwap, anyRuntime},
	{"NoResolvConf", longRun, usual, waitsForResolvConf, anyRuntime},
	{"ReadOnlyRoot", longRun, usual, runsOnAReadOnlyRoot, anyRuntime},
	{"Clock", longRun, usual, outlivesABadClock, anyRuntime},
	{"OutOfMemory", longRun, usual, tellsOfKills, anyRuntime},
	{"ManagedRuntime", longRun, usual, startsARuntime, ownRuntime},
	{"PrivilegedContainer", longRun, usual, runsInAContainer, ownRuntime},
	{"Reserved", longRun, usual, holdsTheSystem, anyRuntime},
	{"CPUs", everyRun, parallel, givesCPUs, anyRuntime},
	{"LittleMachine", longRun, little, fitsALittleMachine, anyRuntime},
	{"AllMemoryTaken", longRun, little, tellsOfExhaustion, anyRuntime},
	{"Limits1Cgroupfs", longRun, recorded, limits(containerd1, cgroupfs), ofContainerdAlone},
	{"Limits1Systemd", longRun, recorded, limits(containerd1, systemd), ofContainerdAlone},
	{"Limits2Systemd", longRun, recorded, limits(containerd2, systemd), ofContainerdAlone},
	{"LimitsCRIO", longRun, recorded, limits(rig.CRIO, systemd), ofCRIOAlone},
	{"Stories1Cgroupfs", longRun, recorded, stories(containerd1, cgroupfs), ofContainerdAlone},
	{"Stories2Cgroupfs", longRun, recorded, stories(containerd2, cgroupfs), ofContainerdAlone},
	{"Stories2Systemd", longRun, recorded, stories(containerd2, systemd), ofContainerdAlone},
	{"StoriesCRIO", longRun, recorded, stories(rig.CRIO, systemd), ofCRIOAlone},
	{"GoldenCgroupfs", longRun, recorded, doesAsAKubelet(cgroupfs), ofContainerdAlone},
	{"GoldenSystemd", longRun, recorded, doesAsAKubelet(systemd), anyRuntime},
	{"Bench", ifNamed, usual, isMeasured, ofContainerdAlone},
}

// tellsSystemd: the package enables and starts the unit, which is ready once it looked
// at everything, tells how the pods are, and reads its settings again.
func tellsSystemd(b *box) error {
	return b.all(
		`systemctl is-enabled monopod; systemctl is-active monopod`,
		`stat -c %a%U /etc/monopod/manifests | grep -qx 700root`,
	).then(func() error {
		if err := b.pods(2); err != nil {
			return err
		}
		if err := b.pod("lost", "nodeSelector: {disk: ssd}", ""); err != nil {
			return err
		}
		if err := b.says("3 pods: 2 running, 1 refused"); err != nil {
			return err
		}
		return b.all(`systemctl restart monopod
systemctl show -P StatusText monopod | grep -x '3 pods: 2 running, 1 refused'`,
			`sed -i 's/^#maxPods: .*/maxPods: 7/' /etc/monopod/config.yaml; systemctl reload monopod`).then(func() error {
			const applied = `journalctl -u monopod -o cat | grep -q 'settings applied.*maxPods'; systemctl is-active monopod`
			if err := b.until(applied); err != nil {
				return err
			}
			score, err := b.sh(`sed -i 's/^maxPods: .*/#maxPods: 110/' /etc/monopod/config.yaml
systemd-analyze security --no-pager monopod | tail -n 1`)
			fmt.Println("systemd-analyze security:", score)
			return err
		})
	})
}

// isReadyWithoutRuntime: a unit that waits for the runtime is not stuck in "activating".
func isReadyWithoutRuntime(b *box) error {
	defer func() { _, _ = b.sh("systemctl start $unit") }()
	return b.all("systemctl stop $unit; systemctl restart monopod",
		`systemctl show -P StatusText monopod | grep -F 'runtime down'`,
		"systemctl start $unit").then(func() error { return b.says("0 pods") })
}

// mountsReachPods: what the agent mounts is in the containers' own mounts. With mounts of
// its own, which the unit must not have, it is not, and the trial sees that.
func mountsReachPods(b *box) error {
	inMemory := func(name string) error {
		return b.pod(name, "volumes: [{name: mem, emptyDir: {medium: Memory, sizeLimit: 8Mi}}]",
			"volumeMounts: [{name: mem, mountPath: /mem}]")
	}
	if err := inMemory("mem"); err != nil {
		return err
	}
	if err := b.says(running(1)); err != nil {
		return err
	}
	err := b.all(`v=$(echo /var/lib/monopod/pods/*/volumes/kubernetes.io~empty-dir/mem)
findmnt -n -o FSTYPE "$v" | grep -qx tmpfs; echo from outside >"$v/file"`,
		`monopod exec mem -- cat /mem/file | grep -qx 'from outside'`,
		`monopod exec mem -- grep ' /mem tmpfs ' /proc/mounts`,
		b.dropIn("PrivateMounts=yes")).then(func() error { return inMemory("hidden") })
	if err != nil {
		return err
	}
	if err := b.says(running(2)); err != nil {
		return err
	}
	return b.all(`monopod exec hidden -- grep -c ' /mem ' /proc/mounts
no monopod exec hidden -- grep ' /mem tmpfs ' /proc/mounts`).err
}

func survivesKill(b *box) error {
	if err := b.pods(5); err != nil {
		return err
	}
	return b.leavesAlone(5, b.killAgent)
}

// isRestartedWhenStuck: an agent that gives no sign of life is ended and started again.
func isRestartedWhenStuck(b *box) error {
	if err := b.all(b.dropIn("WatchdogSec=30\nTimeoutAbortSec=2")).err; err != nil {
		return err
	}
	if err := b.pods(3); err != nil {
		return err
	}
	return b.leavesAlone(3, func() error {
		pid, err := b.sh(`systemctl show -P MainPID monopod`)
		if err != nil {
			return err
		}
		time.Sleep(40 * time.Second) // longer than it may be silent: an agent that works is left alone
		stop := fmt.Sprintf("[ $(systemctl show -P MainPID monopod) = %[1]s ]; kill -STOP %[1]s", pid)
		if _, err := b.sh(stop); err != nil {
			return fmt.Errorf("an agent that works was ended: %w", err)
		}
		if err := b.agentIsAnother(pid); err != nil {
			return err
		}
		return b.all(`journalctl -u monopod -o cat | grep -q 'Watchdog timeout'`).err
	})
}

// upgrades: a package of another version starts another agent, and no container.
func upgrades(b *box) error {
	if err := b.pods(10); err != nil {
		return err
	}
	return b.leavesAlone(10, func() error {
		pid, err := b.sh(`chmod 644 /etc/monopod/config.yaml; echo 'staticPodURLHeader: {X-Node: [edge7]}' >>/etc/monopod/config.yaml
systemctl show -P MainPID monopod; dpkg -i /payload/monopod_2.0_amd64.deb >/dev/null`)
		if err != nil {
			return err
		}
		if err := b.agentIsAnother(pid); err != nil {
			return err
		}
		return b.all(`dpkg -s monopod | grep '^Version: 2.0'`, `[ $(stat -c %a /etc/monopod/config.yaml) = 600 ]`,
			`sed -i '/^staticPodURLHeader/d' /etc/monopod/config.yaml`).err
	})
}

// isRemovedAndPurged: pods outlive the package, also one that is purged, and belong to
// the next; without pods a purge leaves nothing.
func isRemovedAndPurged(b *box) error {
	if err := b.pods(3); err != nil {
		return err
	}
	err := b.leavesAlone(3, func() error {
		return b.all(`dpkg -r monopod; no pgrep -x monopod; [ -e /etc/monopod/manifests/web0.yaml ]`,
			fmt.Sprintf("[ $(running | wc -l) = %d ]", 3*b.maker.perPod),
			`dpkg -P monopod; [ -d /var/lib/monopod/pods ]; [ -e /etc/monopod/manifests/web0.yaml ]`,
			`dpkg -i /payload/monopod_1.0_amd64.deb; systemctl is-active monopod`).err
	})
	if err != nil {
		return err
	}
	return b.all(`rm /etc/monopod/manifests/*`).then(func() error {
		if err := b.noPods(); err != nil {
			return err
		}
		return b.all(`dpkg -P monopod; [ ! -e /var/lib/monopod ]; [ ! -e /etc/monopod ]`,
			`no systemctl cat monopod; [ -z "$(systemctl --failed -q)" ]`).err
	})
}

// comesBackAfterReboot: with no network, and with another host name, the same pods are
// back, and those that ended stay ended.
func comesBackAfterReboot(b *box) error {
	if err := b.pods(4); err != nil {
		return err
	}
	const job = `cat >/etc/monopod/manifests/job.yaml <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  restartPolicy: Never
  volumes: [{name: count, hostPath: {path: /var/tmp}}]
  containers:
  - name: main
    image: ` + rig.Busybox + `
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "echo ran >>/count/ran"]
    volumeMounts: [{name: count, mountPath: /count}]
EOF`
	if _, err := b.sh("rm -f /var/tmp/ran; " + job); err != nil {
		return err
	}
	const all = "5 pods: 4 running, 1 succeeded"
	if err := b.says(all); err != nil {
		return err
	}
	if err := b.keepsNames(b.rebootRenamed); err != nil {
		return err
	}
	if err := b.says(all); err != nil {
		return err
	}
	return b.all(
		"[ $(cat /var/tmp/ran | wc -l) = 1 ] || { echo the job ran again; false; }").then(func() error { return b.whole(4, 1) })
}

// whole waits until a sandbox and a container of each of n pods run in the runtime and
// nothing else does, and counts them as kept; of them and of those that ended nothing
// stays that should not.
func (b *box) whole(n, ended int) error {
	all := b.maker.perPod * n
	err := b.until(fmt.Sprintf(`t=$(running | wc -l)
[ $t = %d ] || { echo "$t containers and sandboxes run"; false; }`, all))
	if err == nil {
		b.kept += all
		err = b.onlyPods(n, ended)
	}
	return err
}

// limits: a pod's limits are in the cgroup where that driver puts it, and its program is.
func limits(version, driver string) func(b *box) error {
	return func(b *box) error {
		if err := b.use(service{version, driver}); err != nil {
			return err
		}
		named := "#cgroupDriver: auto" // it asks the runtime
		if version == containerd1 {
			named = "cgroupDriver: " + driver // which does not say
		}
		if err := b.all("sed -i 's/^#*cgroupDriver: .*/"+named+"/' /etc/monopod/config.yaml", "systemctl restart monopod").then(func() error {
			const resources = "resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 200m, memory: 64Mi}}"
			return b.pod("lim", "", resources)
		}); err != nil {
			return err
		}
		if err := b.says(running(1)); err != nil {
			return err
		}
		path := "/sys/fs/cgroup/kubepods/burstable/pod*"
		if driver == systemd {
			path = "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod*.slice"
		}
		return b.all(fmt.Sprintf(`g=$(echo %s); [ $(cat $g/memory.max) = 67108864 ]; grep -qx '20000 100000' $g/cpu.max
p=$(pgrep -f '^sh -c trap')
grep -q "${g#/sys/fs/cgroup}/" /proc/$p/cgroup`, path)).err
	}
}
