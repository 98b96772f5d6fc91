//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// followsNameServers: a pod that runs has the machine's new name servers, and keeps those that it
// has while the machine's file is of no use.
func followsNameServers(w *world) {
	file := filepath.Join(w.agent.Dir, "resolv.conf")
	put := func(text string) {
		check(w.T, os.WriteFile(file+".new", []byte(text), 0o644))
		check(w.T, os.Rename(file+".new", file))
	}
	has := func(want string) {
		w.until("the pod has the name server "+want, func() error {
			out, err := exec.Command(w.agent.Binary, "exec", "--socket", w.agent.Socket, "-n", w.ns, "web", "--", "cat", "/etc/resolv.conf").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "nameserver "+want+"\n") {
				return fmt.Errorf("%v, %s", err, out)
			}
			return nil
		})
	}
	put("nameserver 192.0.2.1\n")
	w.agent.Settings += "followResolvConf: true\n"
	w.agent.Flags = append(w.agent.Flags, "--resolv-conf", file)
	w.start()
	w.write("web", "\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers: ["+sleeps+"}]\n")
	before := w.running("web")
	has("192.0.2.1")
	put("nameserver 192.0.2.2\n")
	has("192.0.2.2")
	put("nameserver nonsense\n")
	w.ps("is no address of a name server: pods keep the name servers that they have")
	has("192.0.2.2")
	w.kill()
	w.start()
	has("192.0.2.2")
	check(w.T, os.Symlink("other", file+".link"))
	check(w.T, os.WriteFile(filepath.Join(w.agent.Dir, "other"), []byte("nameserver 192.0.2.3\n"), 0o644))
	check(w.T, os.Rename(file+".link", file))
	has("192.0.2.3")
	w.same(before)
}
