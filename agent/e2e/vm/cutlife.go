package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// note is what was known from outside once this many entries were written: what goes
// on from then, or how pods were reported. A cut at a later entry must not undo that.
type note struct {
	entry  int
	moment string
	pods   []v1.Pod
}

// moment is one thing that goes on in the life of the pods: manifests are written, whose
// pods are waited for after a script was run and the machine was rebooted, where it is.
type moment struct {
	name      string
	manifests []manifest
	script    string
	reboots   bool
}

// held is how long a report must have been there before a cut may not undo it: the
// disk takes that long to write what the machine's programs have it sync.
const held = 2 * time.Second

const other = "registry.test/other:1"

var moments = []moment{
	{name: "pods start", manifests: []manifest{always("web0", 1), always("web1", 1), never("job0", 0), crashing}},
	{name: "a job fails", manifests: []manifest{never("job1", 3)}},
	{name: "an image is imported", script: "tag " + rig.Busybox + " " + other + "\nagain"},
	{name: "pods are replaced", manifests: []manifest{always("web0", 2), always("web2", 1)}},
	{name: "pods change in place", manifests: []manifest{in(other, always("web0", 2)), in(other, always("web1", 1))}},
	{name: "the agent is killed", manifests: []manifest{always("web1", 3), never("job3", 1)}, script: `p=$(systemctl show -P MainPID monopod)
kill -9 $p
until q=$(systemctl show -P MainPID monopod)
	[ $q != 0 ] && [ $q != $p ] && systemctl is-active -q monopod
do sleep 0.3; done`},
	{name: "pods go and come", manifests: []manifest{never("job2", 0), always("web3", 1)}, script: "rm web1.yaml job0.yaml"},
	{name: "the machine reboots", manifests: []manifest{always("web2", 2), always("web4", 1), never("job4", 0)}, reboots: true},
	{name: "nothing goes on"},
}

// manifest is a pod's, by its name.
type manifest struct {
	name, text string
	version    string // that its container runs; "": any
}

func always(name string, version int) manifest {
	m := podOf(name, "Always", fmt.Sprintf("trap 'exit 0' TERM; VERSION=%d; sleep 100000 & wait", version))
	m.version = fmt.Sprint(version)
	return m
}

// in returns the manifest with another image.
func in(image string, m manifest) manifest {
	m.text = strings.Replace(m.text, rig.Busybox, image, 1)
	return m
}

// never is a pod that ends, and writes down each of its runs.
func never(name string, code int) manifest {
	return podOf(name, "Never", fmt.Sprintf("echo ran >>/runs/%s; sync /runs/%s; exit %d", name, name, code))
}

var crashing = podOf("crash", "Always", "sleep 3; exit 1")

func podOf(name, policy, command string) manifest {
	return manifest{name: name, text: fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: %s
  terminationGracePeriodSeconds: 1
  volumes: [{name: runs, hostPath: {path: /var/lib/runs, type: DirectoryOrCreate}}, {name: own, emptyDir: {}}]
  containers:
  - name: main
    image: %s
    imagePullPolicy: IfNotPresent
    command: [sh, -c, %q]
    volumeMounts: [{name: runs, mountPath: /runs}, {name: own, mountPath: /own}]
`, name, policy, rig.Busybox, command)}
}

// pass lets a moment pass, and notes how the pods are reported at its end.
func (b *box) pass(m moment, r *record) error {
	r.note(note{moment: m.name})
	// Manifests are written as who cares for them does: whole and synced.
	script := "cd /etc/monopod/manifests\n"
	for _, m := range m.manifests {
		script += fmt.Sprintf("cat >.new <<'EOF'\n%sEOF\nsync .new; mv .new %s.yaml\n", m.text, m.name)
	}
	if _, err := b.sh(script + "sync .\n" + m.script); err != nil {
		return err
	}
	if m.reboots {
		if err := b.reboot(); err != nil {
			return err
		}
	}
	pods, err := b.untilPods(m.manifests)
	if err != nil {
		return err
	}
	time.Sleep(held) // a pod that changes in place runs before, too
	r.note(note{pods: pods})
	return nil
}

// note adds a note about now.
func (r *record) note(n note) {
	n.entry = r.disk.Len()
	r.notes = append(r.notes, n)
}

// reported returns the pods as the agent, which is there, reports them in its files: to
// ask it takes an emulated machine long.
func (b *box) reported() (pods []v1.Pod, err error) {
	out, err := b.sh("cd /var/lib/monopod/status/pods; for f in *.json; do [ ! -e $f ] || cat $f; done")
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p v1.Pod
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pods, nil
		} else if err != nil {
			return nil, fmt.Errorf("%w: %.200s", err, out)
		}
		pods = append(pods, p)
	}
}

// untilPods waits until the pods of manifests run or have ended, and returns all that are
// reported.
func (b *box) untilPods(of []manifest) (pods []v1.Pod, err error) {
	err = rig.Until(b.ctx, 2*limit, func() (err error) {
		if pods, err = b.reported(); err != nil {
			return err
		}
		for _, m := range of {
			if err := m.stands(pods); err != nil {
				time.Sleep(time.Second)
				return err
			}
		}
		return nil
	})
	return pods, err
}

// stands returns why the manifest's pod is not where it should be: running, ended, or
// crashing again and again.
func (m manifest) stands(pods []v1.Pod) error {
	at := slices.IndexFunc(pods, func(p v1.Pod) bool { return nameOf(p) == m.name })
	if at < 0 {
		return fmt.Errorf("%s is not reported", m.name)
	}
	p := pods[at]
	if m.version != "" && !strings.Contains(p.Spec.Containers[0].Command[2], "VERSION="+m.version+";") {
		return fmt.Errorf("%s has not version %s", m.name, m.version)
	}
	switch list := p.Status.ContainerStatuses; {
	case strings.HasPrefix(m.name, "job"):
		if ended(p) {
			return nil
		}
	case p.Status.Phase == v1.PodRunning && len(list) == 1:
		crashed := m.name == "crash" && (list[0].RestartCount > 0 || list[0].State.Terminated != nil)
		if list[0].State.Running != nil || crashed {
			return nil
		}
	}
	return fmt.Errorf("%s is %s: %+v", m.name, p.Status.Phase, p.Status.ContainerStatuses)
}

// nameOf returns a pod's name as in its manifest.
func nameOf(p v1.Pod) string {
	short, _, _ := strings.Cut(p.Name, "-")
	return short
}

func ended(p v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed }
