package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// checkCut checks a machine that booted after a cut: each manifest's pod is there, what
// was known before is so, and nothing is left over.
func (b *box) checkCut(r *record, c cut, o *outcome) error {
	const list = `until systemctl is-active -q monopod; do sleep 0.3; done; cd /etc/monopod/manifests
for f in *.yaml; do [ ! -e $f ] || echo ${f%.yaml} $(grep -o 'VERSION=[0-9]*' $f); done`
	out, err := b.sh(list)
	if err != nil {
		return err
	}
	var wanted []manifest
	for line := range strings.Lines(out) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		wanted = append(wanted, manifest{name: name, version: strings.TrimPrefix(version, "VERSION=")})
	}
	began := time.Now()
	pods, failed := b.untilPods(wanted)
	o.pods = time.Since(began)
	for _, m := range wanted {
		if m.stands(pods) == nil {
			o.kept++
		} else {
			o.lost++
		}
	}
	if failed != nil {
		return failed
	}
	if err := errors.Join(r.undone(c, pods), b.ranOnce(r, c), b.onlyTheirs(pods, o)); err != nil {
		return err
	}
	return b.all(`rm -f /etc/monopod/manifests/*`).then(func() error { return b.onlyTheirs(nil, new(outcome)) })
}

// onlyTheirs waits until the machine has nothing but what is the pods'.
func (b *box) onlyTheirs(pods []v1.Pod, o *outcome) error {
	return rig.Until(b.ctx, 2*limit, func() error {
		err := b.passes(leftOver(pods))
		if err != nil {
			o.waited = err.Error()
		}
		return err
	})
}

// sure returns how pods were reported before a cut and must have been known after it, the
// last report first.
func (r *record) sure(c cut) (reports [][]v1.Pod) {
	for _, n := range slices.Backward(r.notes) {
		if n.entry <= r.log.Sure(c.entry) && n.pods != nil {
			reports = append(reports, n.pods)
		}
	}
	return reports
}

// undone returns what the pods were before the cut and are not any more.
func (r *record) undone(c cut, now []v1.Pod) (err error) {
	reports := r.sure(c)
	if len(reports) == 0 {
		return nil
	}
	for _, was := range reports[0] {
		at := slices.IndexFunc(now, func(p v1.Pod) bool { return p.Name == was.Name && p.UID == was.UID })
		if at < 0 {
			continue // its manifest was changed or removed since
		}
		is := now[at]
		wrong := func(format string, args ...any) { err = errors.Join(err, fmt.Errorf(was.Name+" "+format, args...)) }
		if ended(was) && is.Status.Phase != was.Status.Phase {
			wrong("was %s and is %s", was.Status.Phase, is.Status.Phase)
		}
		if !is.Status.StartTime.Equal(was.Status.StartTime) {
			wrong("started at %s, now at %s", was.Status.StartTime, is.Status.StartTime)
		}
		before, after := was.Status.ContainerStatuses, is.Status.ContainerStatuses
		for k := range min(len(before), len(after)) {
			if before[k].RestartCount > after[k].RestartCount {
				wrong("had %d restarts, now %d", before[k].RestartCount, after[k].RestartCount)
			}
		}
	}
	return err
}

// ranOnce checks that jobs that were known to have ended were not run again. One that
// could not be started has ended, too.
func (b *box) ranOnce(r *record, c cut) error {
	script := ""
	for _, report := range r.sure(c) {
		for _, p := range report {
			if ended(p) {
				name := nameOf(p)
				script += fmt.Sprintf(`n=$(cat /var/lib/runs/%s | wc -l)
[ $n -le 1 ] || { echo "%s had ended, and has run $n times"; false; }
`, name, name)
			}
		}
	}
	return b.passes(script)
}

// passes runs a script, whose output alone is the error if it fails.
func (b *box) passes(script string) error {
	_, err := b.sh(script)
	if err != nil {
		if at := strings.LastIndex(err.Error(), "exit code"); at >= 0 {
			return errors.New(err.Error()[at:])
		}
	}
	return err
}

// leftOver is a script that fails if something is left that belongs to none of the pods.
// What the agent removes after a start is given time.
func leftOver(pods []v1.Pod) string {
	uids := ""
	for _, p := range pods {
		uids += " " + string(p.UID)
	}
	return fmt.Sprintf("uids=' %s '\n", uids) + remains
}

const remains = `bad=""
files=$(find /var/lib/monopod -name '*.corrupt')
[ -z "$files" ] || bad="$bad; put aside: $files"
damaged=$(journalctl -b -u monopod -o cat | grep 'is damaged') || true
[ -z "$damaged" ] || bad="$bad; $damaged"
for d in /var/lib/monopod/pods/* /var/log/pods/*; do
	[ -e "$d" ] || continue
	uid=${d##*/}; uid=${uid##*_}
	case "$uids" in *" $uid "*) ;; *) bad="$bad; $d is of no pod" ;; esac
done
of=$(strangers $uids)
[ -z "$of" ] || bad="$bad; containers of no pod: $of"
live=$(running | cut -d ' ' -f 1)
boxes=$(boxes)
running=$(wc -w <<<"$boxes")
for f in /run/cni/networks/pods/10.*; do
	[ -e "$f" ] || continue
	id=$(head -n 1 "$f" | tr -d '\r')
	case "$boxes" in *"$id"*) [ -n "$id" ] && continue ;; esac
	bad="$bad; address ${f##*/} is of no sandbox that runs: '$id'"
done
is() { [ "$2" = "$3" ] || bad="$bad; $1: $2, want $3"; }
is addresses "$(ls /run/cni/networks/pods | grep -c '^10[.]')" $running
is 'network namespaces' "$(ls /run/netns | wc -l)" $running
is interfaces "$(ls /sys/class/net | grep -c ^veth)" $running
is 'monitors that serve nothing' "$(comm -13 <(sort <<<"$live") <(watched | sort) | wc -l)" 0
is cgroups "$(` + podCgroups + `)" $running
mounted=$(grep -c "$rootfs" /proc/self/mountinfo) || true
is 'root file systems' $mounted "$(printf '%s\n' $live $boxes | sort -u | wc -w)"
[ -z "$bad" ] || { echo "${bad#; }"; sleep 1; false; }`
