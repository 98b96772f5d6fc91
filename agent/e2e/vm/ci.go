package main

import (
	"fmt"
	"strings"

	"monopod/agent/e2e/rig"
)

// runsInAContainer: in a privileged container with a cgroup namespace of its own, as Docker makes it for
// a job of GitLab's, `monopod once` starts a containerd of its own, and runs a pod to its end that has a
// network and is held to its limits. The container's processes are in a cgroup of their own then, as is
// one that is started in it later. It has the programs of the machine, in place of those that a job installs.
func runsInAContainer(b *box) error {
	const job = `rm -rf /var/tmp/ci; mkdir /var/tmp/ci; cat >/var/tmp/ci/job.yaml <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: job}
spec:
  restartPolicy: Never
  containers:
  - name: test
    image: ` + rig.Busybox + `
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "ip -o -4 addr show eth0; cat /sys/fs/cgroup/memory.max"]
    resources: {limits: {memory: 64Mi, cpu: 500m}}
EOF`
	const (
		namespace = "umount /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup; grep -qx 0::/ /proc/self/cgroup; "
		once      = "monopod once --timeout 5m --load /payload/images.tar --report junit=/var/tmp/ci/report.xml /var/tmp/ci/job.yaml; "
		waits     = "echo the run has ended; until [ -e /var/tmp/ci/end ]; do sleep 1; done"
		ended     = `monopod logs runner >/var/tmp/ci/log; grep -x 'the run has ended' /var/tmp/ci/log`
		ran       = `cd /var/tmp/ci; for line in 'test .*inet ' 'test .*67108864' 'runtime: a containerd of its own' 'monopod: all work has succeeded'; do grep "$line" log; done
no grep 'no cgroups' log; grep 'tests=.1. failures=.0.' report.xml`
		aside = `no grep -v '/init$' /proc/$(pgrep -f '^sh -ec umount')/cgroup; monopod exec runner -- cat /proc/self/cgroup | grep '/init$'`
		end   = `touch /var/tmp/ci/end`
	)
	if err := b.all(job).err; err != nil {
		return err
	}
	var volumes, mounts []string
	for k, path := range []string{"/usr:/usr", "/usr/bin:/bin", "/usr/sbin:/sbin", "/usr/lib:/lib", "/usr/lib64:/lib64",
		"/etc/alternatives:/etc/alternatives", "/payload:/payload", "/var/tmp/ci:/var/tmp/ci"} {
		from, to, _ := strings.Cut(path, ":")
		volumes = append(volumes, fmt.Sprintf("{name: v%d, hostPath: {path: %s}}", k, from))
		mounts = append(mounts, fmt.Sprintf("{name: v%d, mountPath: %s}", k, to))
	}
	runner := "exec unshare --cgroup --mount sh -ec '" + namespace + once + waits + "'"
	if err := b.podWith(runner, "runner", "restartPolicy: Never\n  volumes: ["+strings.Join(volumes, ", ")+"]",
		"securityContext: {privileged: true}\n    volumeMounts: ["+strings.Join(mounts, ", ")+"]"); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return b.until(ended) },
		func() error { return b.all(ran, aside, end).err },
		func() error { return b.says("1 pod: 1 succeeded") },
		func() error { return b.all("rm /etc/monopod/manifests/runner.yaml").then(b.noPods) },
	} {
		if err := step(); err != nil {
			log, _ := b.sh("monopod logs runner")
			return fmt.Errorf("%w; what it wrote:\n%s", err, log)
		}
	}
	return nil
}
