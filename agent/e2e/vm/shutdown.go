package main

import (
	"fmt"

	"monopod/agent/e2e/rig"
)

// stopsBeforeShutdown: at a reboot pods stop in reverse start order with their hooks, the
// critical one last, before the machine goes down; then all are back, the job as well that
// was interrupted.
func stopsBeforeShutdown(b *box) error {
	defer func() {
		_, _ = b.sh(`sed -i '/^shutdownGrace/d' /etc/monopod/config.yaml; rm -f /etc/systemd/logind.conf.d/99-monopod.conf; systemctl restart monopod`)
	}()
	err := b.all(`rm -f /var/tmp/stops
printf 'shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 5s\n' >>/etc/monopod/config.yaml; systemctl restart monopod`).then(func() error {
		return b.all(stopping("db", "", ""), stopping("web", "annotations: {monopod.start-after: db}", ""),
			stopping("proxy", "", "priority: 2000001000"), stopping("job", "", "restartPolicy: Never")).err
	})
	if err != nil {
		return err
	}
	if err := b.says(running(4)); err != nil {
		return err
	}
	if err := b.until(`systemd-inhibit --list --no-pager | grep monopod | grep shutdown | grep delay
[ $(busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager InhibitDelayMaxUSec | cut -d' ' -f2) -ge 20000000 ]`); err != nil {
		return err
	}
	if err := b.reboot(); err != nil {
		return err
	}
	if err := b.says(running(4)); err != nil {
		return err
	}
	return b.all(
		`order=$(tr '\n' ' ' </var/tmp/stops); echo "they stopped as $order"
grep -n . /var/tmp/stops | sort -t: -k2 >/var/tmp/numbered
at() { grep ":$1\$" /var/tmp/numbered | cut -d: -f1; }
[ $(wc -l </var/tmp/stops) = 4 ]; [ $(at web) -lt $(at db) ]; [ $(at db) -lt $(at proxy) ]; [ $(at job) -lt $(at proxy) ]`,
		`monopod events | grep -q 'Shutdown manager detected shutdown event'`,
		`grep -q '"endTime":"2' /var/lib/monopod/graceful_node_shutdown_state`,
	).then(func() error { return b.whole(4, 0) })
}

// stopping is a script that writes the manifest of a pod which notes when its hook ran.
func stopping(name, metadata, spec string) string {
	if metadata != "" {
		metadata = ", " + metadata
	}
	return fmt.Sprintf(`cat >/etc/monopod/manifests/%[1]s.yaml <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: %[1]s%[2]s}
spec:
  %[3]s
  volumes: [{name: notes, hostPath: {path: /var/tmp}}]
  containers:
  - name: main
    image: `+rig.Busybox+`
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1; done"]
    lifecycle: {preStop: {exec: {command: [sh, -c, "sleep 1; echo %[1]s >>/notes/stops; sync"]}}}
    volumeMounts: [{name: notes, mountPath: /notes}]
EOF`, name, metadata, spec)
}
