//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

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
	w.barrier("last")
	out, err := w.agent.Says(w.Context(), "images")
	check(w.T, err)
	for _, say := range []string{"no: in archive " + images + "/first.tar", "archive " + images + "/second.tar.gz: imported"} {
		if !strings.Contains(out, say) {
			w.Errorf("images does not say %q:\n%s", say, out)
		}
	}
	w.status("second", "runs on", func(s v1.PodStatus) bool { return s.Phase == v1.PodRunning })
}
