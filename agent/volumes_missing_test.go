package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"monopod/agent/volume"
)

// claimant is a pod that writes into a claim, which its file gives.
var claimant = podOf("web", "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]",
	"containers:", `- {name: c, image: "img:1", volumeMounts: [{name: v, mountPath: /v}]}`) +
	"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"

// After a reboot without the disk of a claim its pod waits, and starts when the disk is back or
// the claim is made by hand. What runs is not stopped when the disk goes.
func TestAPodWaitsForTheDiskOfItsClaim(t *testing.T) {
	for name, remedy := range map[string]func(r *rig, disk string) error{
		"mounted": func(r *rig, disk string) error { return os.Rename(disk, filepath.Join(r.dir, "volumes")) },
		"made by hand": func(r *rig, _ string) error {
			return volume.MakeClaim(r.dir, types.NamespacedName{Namespace: "default", Name: "data"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(r *rig) {
				r.boot.ID = "one"
				disk := filepath.Join(t.TempDir(), "disk")
				r.want(claimant)
				r.expect("default/web-n/c")
				noErr(t, os.Rename(filepath.Join(r.dir, "volumes"), disk))
				r.after(10 * time.Minute)
				r.expect("default/web-n/c")
				r.kill()
				r.reboot()
				r.start()
				r.want(claimant)
				r.after(time.Minute)
				r.expect()
				const missing = "/volumes/default_data of the PersistentVolumeClaim default/data is missing, and was there before: " +
					"mount its disk, or use an empty directory with: monopod volume make default/data"
				if c := r.status("default/web-n").Conditions[0]; c.Reason != "FailedMount" || !strings.Contains(c.Message, missing) {
					t.Errorf("it waits for %+v", c)
				}
				made := r.made()
				r.after(10 * time.Minute)
				if now := r.made(); now != made {
					t.Errorf("%d containers made meanwhile", now-made)
				}
				noErr(t, remedy(r, disk))
				r.after(6 * time.Minute)
				r.expect("default/web-n/c")
			})
		})
	}
}

// A container that crashes while the disk is away does not start on an empty directory below it.
func TestACrashedContainerWaitsForTheDiskOfItsClaim(t *testing.T) {
	live(t, func(r *rig) {
		r.want(claimant)
		volumes, disk := filepath.Join(r.dir, "volumes"), filepath.Join(t.TempDir(), "disk")
		noErr(t, os.Rename(volumes, disk))
		r.Exit("web-n/c", 1)
		r.after(10 * time.Minute)
		r.expect()
		if w := r.containerStatus("default/web-n", "c").State.Waiting; w == nil || !strings.Contains(w.Message, "/volumes/default_data of the PersistentVolumeClaim default/data is missing") {
			t.Errorf("it waits for %+v", w)
		}
		noErr(t, os.RemoveAll(volumes))
		noErr(t, os.Rename(disk, volumes))
		r.after(6 * time.Minute)
		r.expect("default/web-n/c")
	})
}

// An update whose claim is missing finds that before anything stops.
func TestAnUpdateWaitsForTheDiskOfItsClaim(t *testing.T) {
	live(t, func(r *rig) {
		r.AddImage("img:2")
		volumes, disk := filepath.Join(r.dir, "volumes"), filepath.Join(t.TempDir(), "disk")
		r.want(claimant)
		r.after(time.Minute)
		noErr(t, os.Rename(volumes, disk))
		next := strings.Replace(strings.Replace(claimant, `"img:1"`, `"img:2"`, 1), "  containers:", "  hostname: other\n  containers:", 1)
		r.stopsNothing(func() {
			r.want(next)
			r.after(10 * time.Minute)
		})
		r.updateWaits("of the PersistentVolumeClaim default/data is missing, and was there before: mount its disk")
		noErr(t, os.Rename(disk, volumes))
		r.after(2 * time.Minute)
		r.replaced("img:2")
	})
}
