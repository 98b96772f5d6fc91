//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// layersFolders: of two folders the admin's wins and masks, and while it is away nothing of the
// vendor's takes the place of what it gave, also when the agent was killed meanwhile.
func layersFolders(w *world) {
	vendor, admin := w.agent.Manifests, filepath.Join(w.agent.Dir, "admin")
	check(w.T, os.Mkdir(admin, 0o755))
	w.agent.Flags = append(w.agent.Flags, "--manifests", admin)
	pod := func(name, who string) string {
		return w.manifest(name, "\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers: ["+sleeps+", env: [{name: WHO, value: "+who+"}]}]\n")
	}
	put := func(dir, file, text string) {
		check(w.T, os.WriteFile(filepath.Join(dir, "."+file), []byte(text), 0o644))
		check(w.T, os.Rename(filepath.Join(dir, "."+file), filepath.Join(dir, file)))
	}
	who := func(want string) {
		w.until("web is of "+want, func() error {
			out, err := exec.Command(w.agent.Binary, "exec", "--socket", w.agent.Socket, "-n", w.ns, "web", "--", "sh", "-c", "echo $WHO").CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				return fmt.Errorf("%q, %v", got, err)
			}
			return nil
		})
	}
	files := func(want ...string) {
		w.until("ps --files says "+strings.Join(want, ", "), func() error {
			out, err := exec.Command(w.agent.Binary, "ps", "--files", "--socket", w.agent.Socket).CombinedOutput()
			for _, one := range want {
				if !strings.Contains(string(out), one) {
					return fmt.Errorf("no %q, %v, in:\n%s", one, err, out)
				}
			}
			return nil
		})
	}
	put(vendor, "web.yaml", pod("web", "vendor"))
	put(vendor, "extra.yaml", pod("extra", "vendor"))
	put(admin, "mine.yaml", pod("web", "admin"))
	put(admin, "extra.yaml", "")
	w.start()
	before := w.running("web")
	who("admin")
	if n := len(w.containers("extra")); n > 0 {
		w.Errorf("what is masked from the start has %d containers", n)
	}
	files("superseded", "masked by "+filepath.Join(admin, "extra.yaml"), filepath.Join(admin, "mine.yaml")+" gives "+w.ns+"/web")

	check(w.T, os.Rename(admin, admin+".away"))
	w.kill()
	put(vendor, "web.yaml", pod("web", "vendor2"))
	w.start()
	files(admin + ": does not exist")
	w.write("fence", "\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers: ["+sleeps+"}]\n")
	w.running("fence")
	w.same(before)
	if n := len(w.containers("extra")); n > 0 {
		w.Errorf("while the folder that masks it is away it has %d containers", n)
	}

	check(w.T, os.Rename(admin+".away", admin))
	check(w.T, os.Remove(filepath.Join(admin, "extra.yaml")))
	w.running("extra")
	w.same(before)
	check(w.T, os.Remove(filepath.Join(admin, "mine.yaml")))
	who("vendor2")
}
