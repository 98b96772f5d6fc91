package agent

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"monopod/cri/critest"
)

// onSmallDisk runs a test with the root dir on a disk of its own.
// Only root can make one.
func onSmallDisk(t *testing.T, test func(r *rig, disk string)) {
	disk := t.TempDir()
	if err := unix.Mount("monopod-test", disk, "tmpfs", 0, "size=512k"); err != nil {
		t.Skip("no disk can be mounted: ", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Runtime: critest.New(t), dir: filepath.Join(disk, "root"), log: &lines{}}
		r.AddImage("img:1", "img:2")
		r.start()
		defer func() { r.stop() }()
		test(r, disk)
		if t.Failed() {
			t.Logf("the agent's log:\n%s", r.log)
		}
	})
}

// fill leaves no room on a disk; the file's removal gives it back.
func fill(t *testing.T, disk string) (file string) {
	file = filepath.Join(disk, "junk")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, n := range []int{1 << 14, 1} {
		for b := make([]byte, n); err == nil; {
			_, err = f.Write(b)
		}
		err = nil
	}
	return file
}

// pin keeps a file from being replaced until the result is called, or the test ends.
// Only root can.
func pin(t *testing.T, file string) (release func()) {
	t.Helper()
	if err := unix.Mount(file, file, "", unix.MS_BIND, ""); err != nil {
		t.Skip("nothing can be mounted: ", err)
	}
	release = sync.OnceFunc(func() { noErr(t, unix.Unmount(file, unix.MNT_DETACH)) })
	t.Cleanup(release)
	return release
}

func (r *rig) says(n int, text string) {
	r.Helper()
	if got := strings.Count(r.log.String(), text); got != n {
		r.Errorf("%q is said %d times, want %d", text, got, n)
	}
}

func TestOnAFullDiskWhatRunsGoesOnAndWhatIsNewWaits(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		volume := "volumes: [{name: v, emptyDir: {}}]\n  terminationGracePeriodSeconds: 1"
		old := strings.Replace(manifest("old", "img:1", volume), `"img:1"}`, `"img:1", volumeMounts: [{name: v, mountPath: /v}]}`, 1)
		r.want(old, manifest("gone", "img:1"))
		r.after(time.Minute)
		hosts, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "etc-hosts"))
		for _, h := range hosts {
			if err := os.Chtimes(h, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				r.Fatal(err)
			}
		}
		junk := fill(r.T, disk)
		r.Exit("old-n/c", 1)
		r.want(old, manifest("gone", "img:1"), manifest("new", "img:1"))
		r.after(5 * time.Minute)
		r.expect("default/old-n/c", "default/gone-n/c")
		for _, h := range hosts {
			if i, err := os.Stat(h); err != nil || i.ModTime().Unix() != 1 {
				r.Errorf("%s was written again: %v", h, err)
			}
		}
		if st := r.status("default/old-n"); st.ContainerStatuses[0].RestartCount != 1 || st.Phase != v1.PodRunning {
			r.Errorf("status %+v", st)
		}
		waits := r.status("default/new-n").Conditions[0]
		if waits.Reason != "FailedCheckpoint" || !strings.Contains(waits.Message, "no space left on device") {
			r.Errorf("the new pod waits with %+v", waits)
		}
		r.says(1, "status cannot be written; trying again")
		r.says(1, "pod acceptance failed")
		r.want(old, manifest("new", "img:1"))
		r.after(time.Minute)
		if _, there := r.Sandbox("gone-n"); there {
			r.Errorf("a pod cannot go")
		}
		r.says(1, "a restarted agent does not know that the pod is being stopped")
		os.Remove(junk)
		r.after(2 * time.Minute)
		r.expect("default/new-n/c", "default/old-n/c")
		for _, pod := range []string{"new", "old"} {
			if b, err := os.ReadFile(filepath.Join(r.dir, "status/pods/default_"+pod+"-n.json")); err != nil || !strings.Contains(string(b), `"phase": "Running"`) {
				r.Errorf("status of %s: %s %v", pod, b, err)
			}
		}
		r.want()
		r.after(time.Minute)
		r.leavesNothing()
	})
}

func TestAJobThatEndsOnAFullDiskStaysEnded(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		job := manifest("job", "img:1", "restartPolicy: Never")
		r.want(job)
		r.after(time.Minute)
		junk := fill(r.T, disk)
		r.Exit("c", 3)
		r.after(5 * time.Minute)
		if st := r.status("default/job-n"); st.Phase != v1.PodFailed {
			r.Errorf("status %+v", st)
		}
		r.says(1, "pod end failed")
		r.stop()
		os.Remove(junk)
		r.start()
		r.want(job)
		r.after(time.Minute)
		r.RemoveContainerBehindBack("c")
		r.after(time.Minute)
		if st := r.status("default/job-n"); st.Phase != v1.PodFailed || st.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
			r.Errorf("status %+v", st)
		}
		r.expect()
	})
}

// A pod that is known from the runtime alone runs on, and is known again.
func TestACheckpointThatIsNoFileIsSaidAndLeftAside(t *testing.T) {
	live(t, func(r *rig) {
		r.want(manifest("web", "img:1"))
		made := r.made()
		r.kill()
		files, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "pod.json"))
		for _, f := range files {
			if err := os.WriteFile(f, []byte("{"), 0o600); err != nil {
				r.Fatal(err)
			}
		}
		r.start()
		r.want(manifest("web", "img:1"))
		r.after(time.Minute)
		r.expect("default/web-n/c")
		if r.made() != made {
			r.Errorf("something was made again")
		}
		r.says(1, "checkpoint is unusable; ignoring it")
	})
}

// unknown kills the agent and starts another, which knows nothing of its pods
// and can write nothing down.
func (r *rig) unknown(disk string) (junk string) {
	r.Helper()
	r.kill()
	files, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "pod.json"))
	if len(files) == 0 {
		r.Fatal("no pod was written down")
	}
	for _, f := range files {
		noErr(r.T, os.WriteFile(f, []byte("{"), 0o600))
	}
	r.start()
	return fill(r.T, disk)
}

func TestADeadlineIsKeptWithoutACheckpoint(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		job := manifest("job", "img:1", "restartPolicy: Never", "activeDeadlineSeconds: 60")
		r.want(job)
		r.after(time.Second)
		r.expect("default/job-n/c")
		junk := r.unknown(disk)
		r.want(job)
		r.after(10 * time.Minute)
		r.expect()
		os.Remove(junk)
		r.after(time.Minute)
		if st := r.status("default/job-n"); st.Phase != v1.PodFailed || st.Reason != "DeadlineExceeded" {
			r.Errorf("status %+v", st)
		}
	})
}

func TestALivenessProbeKillsWithoutACheckpoint(t *testing.T) {
	onSmallDisk(t, func(r *rig, disk string) {
		m := strings.Replace(manifest("web", "img:1", "hostNetwork: true"), `"img:1"}`, `"img:1", livenessProbe: {tcpSocket: {port: 80}, initialDelaySeconds: 300}}`, 1)
		r.want(m)
		r.after(time.Second)
		first, _ := r.Container("c")
		junk := r.unknown(disk)
		r.want(m)
		r.after(7 * time.Minute)
		r.expect("default/web-n/c")
		if c, _ := r.Container("c"); c.ID == first.ID {
			r.Errorf("the container was not killed")
		}
		os.Remove(junk)
		r.after(time.Minute)
		files, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*", "pod.json"))
		if len(files) != 1 {
			r.Fatalf("checkpoints %v", files)
		}
		if b, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(b), `"name":"web-n"`) {
			r.Errorf("with room on the disk the pod is not written down: %q %v", b, err)
		}
	})
}

// spoils let a disk take nothing any more, until it is mended.
var spoils = map[string]func(t *testing.T, disk string) (mend func()){
	"full": func(t *testing.T, disk string) func() {
		junk := fill(t, disk)
		return func() { noErr(t, os.Remove(junk)) }
	},
	"read-only": func(t *testing.T, disk string) func() {
		noErr(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		return func() { noErr(t, unix.Mount("", disk, "", unix.MS_REMOUNT, "")) }
	},
}

// A new sandbox has another address, which the hosts file of the pod cannot tell then.
func TestAPodHasANewSandboxOnADiskThatTakesNothing(t *testing.T) {
	loses := map[string]func(r *rig){
		"its sandbox dies":  func(r *rig) { r.KillSandbox("web-n") },
		"the machine boots": func(r *rig) { r.reboot() },
	}
	for disk, spoil := range spoils {
		for name, lose := range loses {
			t.Run(name+", and the disk is "+disk, func(t *testing.T) {
				onSmallDisk(t, func(r *rig, disk string) {
					web := manifest("web", "img:1")
					r.want(web)
					r.after(time.Minute)
					r.stop()
					mend := spoil(r.T, disk)
					lose(r)
					r.start()
					r.want(web)
					r.after(time.Minute)
					r.expect("default/web-n/c")
					r.says(1, "hosts file is not written; the container has the one of before, or the runtime's")
					mend()
				})
			})
		}
	}
}

// The disk of a node that was used before: what can be done without writing is done.
func TestAnAgentStartsOnADiskThatTakesNothing(t *testing.T) {
	for name, spoil := range spoils {
		t.Run(name, func(t *testing.T) {
			onSmallDisk(t, func(r *rig, disk string) {
				volume := "volumes: [{name: v, emptyDir: {}}]"
				old := strings.Replace(manifest("old", "img:1", volume), `"img:1"}`, `"img:1", volumeMounts: [{name: v, mountPath: /v}]}`, 1)
				r.want(old)
				made := r.made()
				r.stop()
				noErr(r.T, os.Truncate(filepath.Join(r.dir, "lock"), 0)) // as an agent left it that could not write it
				mend := spoil(r.T, disk)
				r.start()
				r.want(old, manifest("new", "img:1"))
				r.after(time.Minute)
				if r.made() != made {
					r.Errorf("something was made of a pod that is there")
				}
				r.Exit("old-n/c", 1)
				r.after(time.Minute)
				r.expect("default/old-n/c")
				if w := r.status("default/new-n").Conditions[0]; w.Reason != "FailedCheckpoint" {
					r.Errorf("the new pod waits with %+v", w)
				}
				r.says(1, "root dir cannot be written")
				mend()
				r.after(2 * time.Minute)
				r.expect("default/old-n/c", "default/new-n/c")
			})
		})
	}
}
