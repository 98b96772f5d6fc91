//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/e2e/rig"
)

// importsArchives runs pods whose images no registry has: from archives that are there at start,
// and that appear, of each compression. Their images stay, and what is broken is a problem.
func importsArchives(w *world) {
	images := filepath.Join(w.agent.Root, "images")
	check(w.T, os.MkdirAll(images, 0o700))
	check(w.T, rig.SaveImage(filepath.Join(images, "first.tar"), "offline.test/first:1", w.ns+"1"))
	w.start()
	w.write("first", of("offline.test/first:1"))
	w.running("first")

	w.write("second", of("offline.test/second:1"))
	w.write("third", of("offline.test/third:1"))
	w.waiting("second", "offline.test/second:1")
	for k, name := range []string{"second", "third"} {
		part := filepath.Join(w.TempDir(), name)
		check(w.T, rig.SaveImage(part, "offline.test/"+name+":1", fmt.Sprint(w.ns, k+2)))
		program, end := "gzip", ".tar.gz"
		if name == "third" {
			program, end = "zstd", ".tar.zst"
		}
		out, err := exec.Command("sh", "-c", program+" -c "+part+" >"+images+"/"+name+end).CombinedOutput()
		if err != nil {
			w.Fatalf("%s: %v: %s", program, err, out)
		}
	}
	w.running("second", "third")

	whole, err := os.ReadFile(filepath.Join(images, "first.tar"))
	check(w.T, err)
	broken := filepath.Join(images, "broken.tar")
	check(w.T, os.WriteFile(broken, whole[:len(whole)/2], 0o600))
	w.ps("archive of images " + broken + ": it ends too early: copy it again")
	check(w.T, os.Remove(broken))

	w.remove("first")
	w.until("images of archives stay", func() error {
		out, err := w.agent.Says(w.Context(), "images")
		for _, say := range []string{"no: in archive " + images + "/first.tar", "archive " + images + "/second.tar.gz: imported"} {
			if !strings.Contains(out, say) {
				err = fmt.Errorf("images does not say %q:\n%s", say, out)
			}
		}
		return err
	})
	w.handlesImages()
	w.status("second", "runs on", func(s v1.PodStatus) bool { return s.Phase == v1.PodRunning })
}

// TestAnImportOnAFullDiskLeavesNothing imports two archives for which the runtime's disk has no room,
// one of them only when it is unpacked, beside one for which it has. A name that one of them takes
// means again the image that it meant. The agent holds no layer in its memory.
func TestAnImportOnAFullDiskLeavesNothing(t *testing.T) {
	binary := monopod(t)
	for _, version := range rig.Tested() {
		t.Run(version, func(t *testing.T) {
			r := open(t, version)
			disk := onSmallDisk(t, r, 160)
			importsWithoutRoom(newWorld(t, r, binary, "fulldisk"), disk)
		})
	}
}

func importsWithoutRoom(w *world, disk string) {
	images := filepath.Join(w.agent.Root, "images")
	check(w.T, os.MkdirAll(images, 0o700))
	check(w.T, rig.SaveImageOf(filepath.Join(images, "large.tar"), "offline.test/large:1", 200<<20))
	w.start()
	former := filepath.Join(w.TempDir(), "former.tar")
	check(w.T, rig.SaveImage(former, "offline.test/unpacked:1", "former"))
	out, err := w.agent.CLI(w.Context(), "images", "load", former)
	if err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	check(w.T, rig.SaveImageOfZeros(filepath.Join(images, "unpacked.tar"), "offline.test/unpacked:1", 200<<20))
	w.ps("archive of images "+images+"/large.tar", "the archive alone has 20")
	w.ps("archive of images "+images+"/unpacked.tar", "no space left on device")
	check(w.T, os.Remove(filepath.Join(images, "unpacked.tar")))
	w.until("nothing of them is left", func() error {
		if u := used(w.T, disk); u > 40 {
			return fmt.Errorf("%d %% of the disk are used", u)
		}
		out, err := w.agent.CLI(w.Context(), "images")
		if err != nil || strings.Contains(out, "offline.test/large") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	w.write("former", of("offline.test/unpacked:1"))
	w.running("former")
	check(w.T, rig.SaveImage(filepath.Join(images, "small.tar"), "offline.test/small:1", w.ns))
	w.write("small", of("offline.test/small:1"))
	w.running("small")
	if peak := w.agent.Peak(); peak == 0 || peak > 64<<20 {
		w.Errorf("the agent had %d MB in memory", peak>>20)
	}
	check(w.T, os.Remove(filepath.Join(images, "large.tar")))
	w.until("the problem has gone", func() error {
		if out, err := w.agent.Says(w.Context(), "ps"); err != nil || strings.Contains(out, "large.tar") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// handlesImages gives the runtime an image by hand, and takes it away.
func (w *world) handlesImages() {
	w.Helper()
	const name = "offline.test/loaded:1"
	file := filepath.Join(w.TempDir(), "loaded.tar")
	check(w.T, rig.SaveImage(file, name, w.ns+"loaded"))
	w.write("loaded", of(name))
	w.waiting("loaded", name)
	for _, from := range []string{"load " + file, "load - <" + file} {
		if strings.Contains(from, "<") && !w.rig.Runtime.ImportsStreams() {
			continue
		}
		out, err := exec.Command("sh", "-c", w.agent.Binary+" images --socket "+w.agent.Socket+" "+from).CombinedOutput()
		if err != nil || string(out) != name+" loaded\n" {
			w.Errorf("%s: %v: %s", from, err, out)
		}
	}
	w.running("loaded")
	out, err := w.agent.CLI(w.Context(), "images", "rm", name)
	if err == nil {
		w.Errorf("an image that is used is removed: %s", out)
	}
	out, err = w.agent.CLI(w.Context(), "images", "pull", rig.Busybox2)
	if err != nil || out != rig.Busybox2+" pulled\n" {
		w.Errorf("pull: %v: %s", err, out)
	}
	for _, args := range [][]string{{"prune", "--dry-run"}, {"rm", rig.Busybox2}} {
		out, err = w.agent.CLI(w.Context(), "images", args...)
		if err != nil || !strings.Contains(out, rig.Busybox2) || strings.Contains(out, "offline.test") {
			w.Errorf("%v: %v: %s", args, err, out)
		}
	}
}
