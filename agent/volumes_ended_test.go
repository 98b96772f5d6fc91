package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"monopod/agent/config"
	"monopod/agent/plan"
	"monopod/agent/settings"
	"monopod/cri/critest"
)

// scratchJob is a job with a volume on disk and one in memory.
var scratchJob = podOf("job", "restartPolicy: Never", "volumes: [{name: e, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}]",
	"containers:", `- {name: c, image: "img:1", volumeMounts: [{name: e, mountPath: /e}, {name: m, mountPath: /m}]}`)

// volumes returns the volumes of all pods, by name.
func (r *rig) volumes() string {
	dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods/*/volumes/*/*"))
	var names []string
	for _, dir := range dirs {
		names = append(names, filepath.Base(dir))
	}
	return strings.Join(names, " ")
}

func TestAnEndedPodGivesItsVolumesBack(t *testing.T) {
	needsMounts(t)
	live(t, func(r *rig) {
		defer r.unmount()
		r.want(scratchJob)
		if has := r.volumes(); has != "e m" {
			r.Fatalf("volumes while it runs: %q", has)
		}
		r.Exit("c", 3)
		r.after(time.Second)
		if left := r.volumes(); left != "" {
			r.Errorf("volumes left: %s", left)
		}
		r.endedWith3()
		if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), r.dir) {
			r.Error("a volume in memory is still mounted")
		}
		if files, _ := filepath.Glob(filepath.Join(r.dir, "pods/*/pod.json")); len(files) != 1 {
			r.Errorf("checkpoints: %v", files)
		}
		made := r.made()
		r.stop()
		r.start()
		r.want(scratchJob)
		r.after(time.Minute)
		if r.endedWith3(); r.made() != made || r.volumes() != "" {
			r.Errorf("another agent made something of it, volumes %q", r.volumes())
		}
		if n := strings.Count(r.log.String(), "pod volumes removed"); n != 1 {
			r.Errorf("removed %d times", n)
		}
	})
}

// endedWith3 checks the status of the job.
func (r *rig) endedWith3() {
	r.Helper()
	st := r.status("default/job-n")
	if st.Phase != v1.PodFailed || st.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
		r.Errorf("status %+v", st)
	}
}

func TestKeptVolumesGoOnceTheSettingSaysSo(t *testing.T) {
	needsMounts(t)
	keep := func(c *config.Config) { c.KeepEndedVolumes = true }
	liveWith(t, func(r *rig) { r.configure = keep }, func(r *rig) {
		defer r.unmount()
		r.Program("c", critest.Exits(3))
		r.want(scratchJob)
		r.after(time.Minute)
		r.endedWith3()
		if has := r.volumes(); has != "e m" {
			r.Fatalf("volumes %q", has)
		}
		r.change(func(c *config.Config) { c.KeepEndedVolumes = false })
		r.after(time.Second)
		if left := r.volumes(); left != "" {
			r.Errorf("volumes left: %s", left)
		}
	})
}

func TestVolumesOfAFormerAgentsEndedPodGo(t *testing.T) {
	needsMounts(t)
	liveWith(t, func(r *rig) { r.configure = func(c *config.Config) { c.KeepEndedVolumes = true } }, func(r *rig) {
		defer r.unmount()
		r.Program("c", critest.Exits(3))
		r.want(scratchJob)
		r.after(time.Minute)
		r.stop()
		if has := r.volumes(); has != "e m" {
			r.Fatalf("volumes %q", has)
		}
		r.configure = nil
		r.start()
		r.want(scratchJob)
		r.after(time.Second)
		if r.endedWith3(); r.volumes() != "" {
			r.Errorf("volumes left: %s", r.volumes())
		}
	})
}

func TestAForeignMountKeepsAnEndedPodsVolumes(t *testing.T) {
	needsMounts(t)
	live(t, func(r *rig) {
		defer r.unmount()
		r.want(scratchJob)
		dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods/*/volumes/*/e"))
		if len(dirs) != 1 {
			r.Fatalf("volumes %v", dirs)
		}
		inner := mountedIn(t, dirs[0])
		r.Exit("c", 3)
		r.after(time.Minute)
		r.endedWith3()
		if _, err := os.Stat(inner.file); err != nil {
			r.Error(err)
		}
		inner.unmount()
		r.after(plan.RetryMax)
		if left := r.volumes(); left != "" {
			r.Errorf("volumes left: %s", left)
		}
	})
}

func TestARunKeepsItsPodsVolumesToItsEnd(t *testing.T) {
	cfg := config.Default()
	cfg.NodeName = "n"
	once, err := settings.Complete(cfg, true)
	if err != nil || !settings.Plans(once).KeepVolumes {
		t.Errorf("volumes go when a pod ends: %v", err)
	}
	cfg.Manifests = []string{"/m"}
	if daemon, err := settings.Complete(cfg, false); err != nil || settings.Plans(daemon).KeepVolumes {
		t.Errorf("volumes stay: %v", err)
	}
}

// foreign is a mount that is not the agent's, with a file.
type foreign struct {
	file    string
	unmount func()
}

// mountedIn mounts a file system in a new folder of dir.
func mountedIn(t *testing.T, dir string) foreign {
	t.Helper()
	at := filepath.Join(dir, "inner")
	f := foreign{file: filepath.Join(at, "file"), unmount: func() { unix.Unmount(at, unix.MNT_DETACH) }}
	err := errors.Join(os.Mkdir(at, 0o700), unix.Mount("tmpfs", at, "tmpfs", 0, ""), os.WriteFile(f.file, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A claim's data is there again for the next pod that names it, whatever kind gives it.
func TestAClaimsDataOutlivesItsPod(t *testing.T) {
	live(t, func(r *rig) {
		file := filepath.Join(r.dir, "volumes", "default_data-db-0", "file")
		doc := `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {selector: {matchLabels: {a: b}}, replicas: REPLICAS,
			volumeClaimTemplates: [{metadata: {name: data}}], template: {metadata: {labels: {a: b}}, spec: {
			containers: [{name: c, image: "img:1", volumeMounts: [{name: data, mountPath: /data}]}]}}}}`
		doc = strings.ReplaceAll(doc, "\t", " ")
		one, none := strings.Replace(doc, "REPLICAS", "1", 1), strings.Replace(doc, "REPLICAS", "0", 1)
		r.want(one)
		r.expect("default/db-0-n/c")
		c, ok := r.Container("default/db-0-n/c")
		if !ok || c.Config.Mounts[0].HostPath != filepath.Dir(file) {
			r.Fatalf("mounts %v", c.Config.Mounts)
		}
		if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
			r.Fatal(err)
		}
		r.want(none)
		r.after(time.Minute)
		r.expect()
		if dirs, _ := filepath.Glob(filepath.Join(r.dir, "pods", "*")); len(dirs) > 0 {
			r.Errorf("left on disk: %v", dirs)
		}
		r.want(one)
		r.expect("default/db-0-n/c")
		if b, err := os.ReadFile(file); string(b) != "kept" {
			r.Errorf("%q, %v", b, err)
		}
	})
}
