package worker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"monopod/agent/checkpoint"
	"monopod/manifests"
)

// mounts skips a test for a user who may mount nothing.
func mounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
}

// unwritable lets the disk take nothing of a pod any more.
func (r *rig) unwritable(p *manifests.Pod) {
	r.Helper()
	dir := filepath.Join(r.root.Dir, "pods", string(p.UID))
	if err := errors.Join(unix.Mount(dir, dir, "", unix.MS_BIND, ""), unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// What runs is kept running on a disk that takes nothing: a rule that restarts all containers counts, too.
func TestARuleRestartsAllContainersOnADiskThatTakesNothing(t *testing.T) {
	mounts(t)
	bubble(t, func(r *rig) {
		u := Update{Pod: r.podOf("metadata: {name: web}\nspec: {hostNetwork: true, containers: [{name: c, image: 'img:1', restartPolicy: Never, " +
			"restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}, {name: d, image: 'img:1'}]}\n"), Generation: 1}
		r.passes(u)
		r.runs("default/web-n/c", "default/web-n/d")
		r.unwritable(u.Pod)
		r.Exit("c", 42)
		r.after(time.Minute, u)
		r.runs("default/web-n/c", "default/web-n/d")
	})
}

// A pod that starts after others, and that the disk has, comes up after a reboot though the disk takes
// nothing.
func TestAPodInAStartOrderComesUpOnADiskThatTakesNothing(t *testing.T) {
	mounts(t)
	bubble(t, func(r *rig) {
		u := Update{Pod: r.podOf("metadata: {name: web, annotations: {monopod.start-after: db}}\nspec: {hostNetwork: true, containers: [{name: c, image: 'img:1'}]}\n"), Generation: 1}
		r.passes(u)
		r.runs("default/web-n/c")
		r.unwritable(u.Pod)
		r.pool.Disk.Machine.Boot = checkpoint.Boot{ID: "another", Since: time.Now()}
		r.KillSandbox("web-n")
		r.after(time.Minute, u)
		r.runs("default/web-n/c")
	})
}
