//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// sleeps is a container that runs until it is told to end.
const sleeps = `{name: main, image: "registry.test/busybox:1", command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1; done"]`

// page is a server that gives one answer, to be changed.
type page struct {
	sync.Mutex
	code  int
	body  string
	asked int
}

func (p *page) give(code int, body string) {
	p.Lock()
	defer p.Unlock()
	p.code, p.body, p.asked = code, body, 0
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Lock()
	defer p.Unlock()
	p.asked++
	if r.Header.Get("X-Key") != "open" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.WriteHeader(p.code)
	fmt.Fprint(w, p.body)
}

// serve serves a page on this machine, and returns its address.
func (w *world) serve(p *page) string {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(w.T, err)
	s := &http.Server{Handler: p}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) }) // ends with Close
	w.Cleanup(func() {
		s.Close()
		served.Wait()
	})
	return "http://" + l.Addr().String() + "/pods"
}

// takesPodsFromAURL: what a URL gives runs; whatever goes wrong with it removes nothing,
// and no machine needs it to start again. Only a whole answer without a pod removes it.
func takesPodsFromAURL(w *world) {
	pod := func(name string) string {
		return w.manifest(name, "\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers: ["+sleeps+"}]\n") + "\n---\n"
	}
	p := &page{code: 200, body: pod("a") + pod("b")}
	w.agent.Settings += "httpCheckFrequency: 1s\n"
	w.agent.Flags = append(w.agent.Flags, "--manifest-url", w.serve(p), "--manifest-url-header", "X-Key=open")
	w.start()
	before := w.running("a", "b")
	asked := func(what string) {
		w.until("the URL is asked again after "+what, func() error {
			p.Lock()
			defer p.Unlock()
			if p.asked < 2 {
				return fmt.Errorf("%d times", p.asked)
			}
			return nil
		})
		w.same(before)
	}
	for _, bad := range []struct {
		what, body string
		code       int
	}{{"an empty answer", "", 200}, {"an error", "no", 500}, {"a portal", "<html><body>Log in</body></html>", 200}, {"nonsense", "kind: [", 200}} {
		p.give(bad.code, bad.body)
		asked(bad.what)
	}
	w.kill()
	w.start()
	w.same(before)
	p.give(200, pod("a"))
	w.until("b is gone", func() error {
		if n := len(w.containers("b")); n > 0 {
			return fmt.Errorf("%d containers", n)
		}
		return nil
	})
	w.running("a")
	p.give(200, "apiVersion: v1\nkind: PodList\nitems: []\n")
	w.until("a is gone", func() error {
		if n := len(w.sandboxes("a")); n > 0 {
			return fmt.Errorf("%d sandboxes", n)
		}
		return nil
	})
}

// runsWorkloads: a Deployment is its one pod, and what it writes to its claim outlives it.
func runsWorkloads(w *world) {
	deployment := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      containers: [%[2]s, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: %[1]s}
spec: {ports: [{port: 80}]}
`, w.ns, sleeps)
	w.start()
	w.writeFile("claim.yaml", fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: %s}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", w.ns))
	w.writeFile("shop.yaml", deployment)
	w.running("shop")
	w.in("shop", "echo kept > /data/f; cat /data/f", "kept")
	check(w.T, os.Remove(filepath.Join(w.agent.Manifests, "shop.yaml")))
	w.until("the pod is gone", func() error {
		if n := len(w.sandboxes("shop")); n > 0 {
			return fmt.Errorf("%d sandboxes", n)
		}
		return nil
	})
	w.writeFile("shop.yaml", deployment)
	w.running("shop")
	w.in("shop", "cat /data/f", "kept")
}

// tellsADeployer: diff says what a file would do, wait when it has come to it, and
// ps what became of it.
func tellsADeployer(w *world) {
	w.start()
	pod := func(env string) string {
		return w.manifest("web", "\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  containers: ["+sleeps+", env: [{name: E, value: "+env+"}]}]\n")
	}
	draft := filepath.Join(w.agent.Dir, "web.yaml")
	write := func(text string) { w.Helper(); check(w.T, os.WriteFile(draft, []byte(text), 0o600)) }
	says := func(code int, words string, args ...string) {
		w.Helper()
		cmd := w.command(w.Context(), args[0], args[1:]...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), words) {
			w.Errorf("%v exits with %d and says\n%s", args, got, out)
		}
	}
	put := func() { w.Helper(); check(w.T, os.Rename(draft, filepath.Join(w.agent.Manifests, "web.yaml"))) }
	write(pod("one"))
	says(1, "new", "diff", draft)
	put()
	says(0, "", "wait", "web.yaml", "--for", "updated", "--timeout", "60s")
	before := w.running("web")
	write(pod("one"))
	says(0, "unchanged", "diff", draft)
	write(pod("two"))
	says(1, "env", "diff", draft)
	put()
	says(0, "", "wait", "web.yaml", "--for", "updated", "--timeout", "60s")
	if now := w.running("web"); now["web"].ID == before["web"].ID {
		w.Error("the container is the same")
	}
	write(strings.Replace(pod("three"), "image:", "imagine:", 1))
	put()
	says(1, "imagine", "wait", "web.yaml", "--for", "accepted", "--timeout", "60s")
	says(0, "rejected", "ps", "--files")
	w.remove("web")
	says(0, "", "wait", "web.yaml", "--for", "removed", "--timeout", "60s")
}
