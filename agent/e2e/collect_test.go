//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent"
	"monopod/agent/config"
	"monopod/agent/e2e/rig"
)

// TestImagesAreCollected fills a small disk with images beyond the threshold:
// those that nobody needs go, the one used least recently first, and no others.
func TestImagesAreCollected(t *testing.T) {
	binary := monopod(t)
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := open(t, version)
			disk := onSmallDisk(t, r, 400)
			w := newWorld(t, r, binary, "collect")
			runInProcess(w)
			collectsImages(w, disk)
		})
	}
}

// onSmallDisk gives containerd a file system of so many MB for all that it keeps,
// and returns where it is.
func onSmallDisk(t *testing.T, r *rig.Rig, size int64) string {
	t.Helper()
	check(t, r.Runtime.Stop())
	file, dir := filepath.Join(r.Dir, "disk"), filepath.Join(r.Runtime.Dir, "root")
	check(t, os.WriteFile(file, nil, 0o600))
	check(t, os.Truncate(file, size<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", file).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no file system of its own for images: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", file, dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no loop device for a file system of images: %v: %s", err, out)
	}
	t.Cleanup(func() { // nothing of the rig looks into what is unmounted
		_ = r.CRI.RemoveAll(context.Background(), "")
		if err := r.Runtime.Stop(); err != nil {
			t.Errorf("stop containerd: %v", err)
		}
		err := rig.Until(context.Background(), 10*time.Second, func() error { return syscall.Unmount(dir, 0) })
		if err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	check(t, r.Runtime.Start(t.Context()))
	return dir
}

// used returns how full a file system is, in percent.
func used(t *testing.T, dir string) int {
	t.Helper()
	var st syscall.Statfs_t
	check(t, syscall.Statfs(dir, &st))
	return 100 - int(st.Bavail*100/st.Blocks)
}

// runInProcess runs the scenario's agent in this process, where intervals can be short.
func runInProcess(w *world) {
	w.Helper()
	check(w.T, os.MkdirAll(w.agent.Root, 0o755))
	log, err := os.Create(w.agent.Log)
	check(w.T, err)
	c := config.Default()
	c.Manifests, c.Endpoint, c.Root, c.PodLogs, c.NodeName = []string{w.agent.Manifests}, w.agent.Endpoint, w.agent.Root, w.agent.PodLogs, rig.Node
	c.Listen, c.Socket, c.CgroupRoot = "", w.agent.Socket, w.agent.Cgroups
	c.ImageGCHigh, c.ImageGCLow, c.ImageMinAge = 70, 50, time.Millisecond
	a, err := agent.New(c, nil, agent.Options{Log: slog.New(slog.NewTextHandler(log, nil)), CollectEvery: 500 * time.Millisecond})
	check(w.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	w.Cleanup(func() {
		check(w.T, w.agent.Clear())
		if err := rig.Until(context.Background(), limit, func() error { return w.empty(context.Background()) }); err != nil {
			w.Errorf("after all manifests were removed: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the agent ended: %v", err)
		}
		if w.Failed() {
			w.Logf("end of the agent's log:\n%s", rig.Tail(w.agent.Log, 40))
		}
		log.Close()
	})
}

// spare makes an image of 10 MB that nothing runs, and returns its name.
func spare(w *world, repo string) string {
	w.Helper()
	data := make([]byte, 10<<20)
	seed := []byte(w.rig.Runtime.Version + repo)
	for k, x := 0, uint32(1); k < len(data); k++ { // bytes that do not compress
		x = x*1664525 + 1013904223 + uint32(seed[k%len(seed)])
		data[k] = byte(x >> 24)
	}
	img, err := rig.NewImage([]string{"x"}, rig.Entry{Path: "data", Data: data})
	check(w.T, err)
	ref := "registry.test/" + repo + ":1"
	_, err = w.rig.Registry.Push(ref, img)
	check(w.T, err)
	return ref
}

// images returns those that the runtime has, by name.
func (w *world) images() []string {
	w.Helper()
	r, err := w.rig.CRI.Images.ListImages(w.Context(), &rt.ListImagesRequest{})
	check(w.T, err)
	var names []string
	for _, i := range r.Images {
		names = append(names, i.RepoTags...)
	}
	slices.Sort(names)
	return names
}

func collectsImages(w *world, disk string) {
	w.write("runs", sleeper)
	w.writeFile("waits.yaml", w.manifest("waits", "  nodeSelector: {there: none}\n"+strings.Trim(of(spare(w, "named")), "\n")))
	w.running("runs")
	check(w.T, w.rig.CRI.Pull(w.Context(), "registry.test/named:1"))
	var all []string
	for k := 0; k == 0 || slices.Contains(w.images(), all[0]); k++ {
		ref := spare(w, fmt.Sprintf("spare%02d", k))
		check(w.T, w.rig.CRI.Pull(w.Context(), ref))
		all = append(all, ref)
		if k == 0 {
			w.until("monopod images says what would go", func() error {
				out, err := w.agent.Says(w.Context(), "images")
				if err != nil || !strings.Contains(out, "goes as number 1 when the disk is 70 % full") {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			})
		}
		if k > 30 {
			w.Fatalf("after %d images none has gone: %d %% are used", k, used(w.T, disk))
		}
	}
	w.until("there is room", func() error {
		if u := used(w.T, disk); u >= 70 {
			return fmt.Errorf("%d %% are used", u)
		}
		return nil
	})
	left := w.images()
	for _, ref := range []string{rig.Busybox, rig.Pause, "registry.test/named:1"} {
		if !slices.Contains(left, ref) {
			w.Errorf("%s has gone, of %q", ref, left)
		}
	}
	if slices.Contains(left, all[0]) || !slices.Contains(left, all[len(all)-1]) {
		w.Errorf("left are %q of %q", left, all)
	}
	w.write("next", sleeper)
	w.running("next")
	out, err := w.agent.Says(w.Context(), "images", "-o", "wide")
	check(w.T, err)
	for _, want := range []string{w.ns + "/next," + w.ns + "/runs", w.ns + "/waits", "pinned by the runtime", "% of"} {
		if !strings.Contains(out, want) {
			w.Errorf("monopod images does not say %q:\n%s", want, out)
		}
	}
}
