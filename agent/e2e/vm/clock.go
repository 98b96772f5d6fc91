package main

import (
	"fmt"
	"time"
)

// outlivesABadClock: a machine that boots in 1970, after it ran before, has its pods;
// when its clock is set none of them restarts, no deadline passes, and who restarts
// later does so at once and of today.
func outlivesABadClock(b *box) error {
	if err := b.pod("short", "activeDeadlineSeconds: 7200", ""); err != nil {
		return err
	}
	const probe = "livenessProbe: {exec: {command: [sh, -c, 'true']}, periodSeconds: 2, timeoutSeconds: 60}"
	if err := b.pod("probed", "", probe); err != nil {
		return err
	}
	if err := b.says(running(2)); err != nil {
		return err
	}
	if err := b.refit(early); err != nil {
		return err
	}
	if err := b.all("systemctl stop monopod; date -s @100000; systemctl start monopod").err; err != nil {
		return err
	}
	if err := b.pod("late", "activeDeadlineSeconds: 7200", ""); err != nil {
		return err
	}
	if err := b.says(running(3)); err != nil {
		return err
	}
	if err := b.leavesAlone(3, b.setClock); err != nil {
		return err
	}
	if err := b.restarts("probed"); err != nil {
		return err
	}
	return b.noneIsOfTomorrow()
}

// setClock sets the clock to the right time, and has agents look at everything twice.
func (b *box) setClock() error {
	if err := b.all(fmt.Sprintf("date -s @%d", time.Now().Unix())).err; err != nil {
		return err
	}
	if err := b.pod("barrier", "restartPolicy: Never", ""); err != nil {
		return err
	}
	if err := b.says(running(4)); err != nil {
		return err
	}
	return b.all("rm /etc/monopod/manifests/barrier.yaml").then(func() error {
		if err := b.says(running(3)); err != nil {
			return err
		}
		return b.killAgent()
	})
}

// noneIsOfTomorrow: no time that is reported lies ahead, and the restarted container's is of this hour.
func (b *box) noneIsOfTomorrow() error {
	return b.all(`now=$(date +%s)
for t in $(monopod ps -o json | grep -oE '"(startTime|startedAt|creationTimestamp)": *"[^"]+' | grep -oE '[0-9-]+T[0-9:.]+Z'); do
	s=$(date -d $t +%s); [ $s -le $now ] || { echo "$t lies ahead"; exit 1; }
done
t=$(monopod ps -o json probed | grep -A 3 '"running"' | grep -oE '[0-9-]+T[0-9:.]+Z')
[ $(($(date +%s) - $(date -d $t +%s))) -lt 3600 ] || { echo "the restarted container is of $t"; exit 1; }`).err
}
