//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// waiting waits until the pod's container waits and its message has one of words.
func (w *world) waiting(pod string, words ...string) {
	w.Helper()
	w.status(pod, fmt.Sprintf("waits and says one of %q", words), func(s v1.PodStatus) bool {
		return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Waiting != nil && slices.ContainsFunc(words, func(word string) bool {
			return strings.Contains(s.ContainerStatuses[0].State.Waiting.Message, word)
		})
	})
}

// denied is what runtimes say of a registry that does not let them in.
var denied = []string{"401", "no basic auth credentials", "authentication required"}

// pullsWithCredentials pulls from a registry that asks for a password: the
// node's docker config has one, a plugin has another, and a third is wrong.
func pullsWithCredentials(w *world) {
	m := newMoody(w, "guarded.test")
	bin := w.TempDir()
	plugin := "#!/bin/sh\ncat >" + bin + "/asked\n" +
		`echo '{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Registry", "auth": {"` + m.host + `": {"username": "bot", "password": "plugin-geheim"}}}'` + "\n"
	check(w.T, os.WriteFile(filepath.Join(bin, "helper"), []byte(plugin), 0o755))
	config := filepath.Join(bin, "providers.yaml")
	check(w.T, os.WriteFile(config, []byte(`apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- {name: helper, matchImages: ["`+m.host+`/plugin"], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1}
`), 0o600))
	w.agent.Flags = []string{"--image-credential-provider-config", config, "--image-credential-provider-bin-dir", bin}
	check(w.T, os.MkdirAll(w.agent.Root, 0o755))
	pair := base64.StdEncoding.EncodeToString([]byte("me:file-geheim"))
	check(w.T, os.WriteFile(filepath.Join(w.agent.Root, "config.json"), []byte(`{"auths": {"https://`+m.host+`/file": {"auth": "`+pair+`"},
		"`+m.host+`/wrong": {"username": "me", "password": "wrong-geheim"}}}`), 0o600))
	m.set("file", asks("me", "file-geheim"))
	m.set("plugin", asks("bot", "plugin-geheim"))
	m.set("wrong", asks("me", "right-geheim"))
	m.set("none", asks("me", "right-geheim"))
	w.start()
	for _, repo := range []string{"file", "plugin", "wrong", "none"} {
		w.write(repo, of(m.image(repo)))
	}
	w.running("file", "plugin")
	w.waiting("wrong", denied...)
	w.waiting("none", denied...)
	asked, err := os.ReadFile(filepath.Join(bin, "asked"))
	if !strings.Contains(string(asked), `"image":"`+m.host+`/plugin"`) {
		w.Errorf("the plugin was asked %s, %v", asked, err)
	}
	m.set("none", nil)
	w.running("none")
	ps, err := w.agent.CLI(w.Context(), "ps", "-o", "yaml")
	check(w.T, err)
	log, err := os.ReadFile(w.agent.Log)
	check(w.T, err)
	if all := ps + string(log); strings.Contains(all, "geheim") || strings.Contains(all, pair) {
		w.Errorf("a password is shown:\n%s", all)
	}
}

// pullsThroughTrouble pulls from a registry that is in every kind of trouble at
// first: each pod says so, and runs soon after the registry has recovered.
func pullsThroughTrouble(w *world) {
	m := newMoody(w, "moody.test")
	w.start()
	trouble := map[string]struct {
		mood mood
		says []string
	}{
		"denied":  {asks("nobody", "nothing"), denied},
		"missing": {says(http.StatusNotFound), []string{"not found", "manifest unknown", "404"}},
		"busy":    {says(http.StatusTooManyRequests), []string{"429"}},
		"broken":  {says(http.StatusServiceUnavailable), []string{"503"}},
	}
	m.set("slow", slow(time.Second))
	m.set("cut", cuts(1))
	m.set("stuck", slow(time.Hour))
	for repo, in := range trouble {
		m.set(repo, in.mood)
		w.write(repo, of(m.image(repo)))
	}
	for _, repo := range []string{"slow", "cut", "stuck"} {
		w.write(repo, of(m.image(repo)))
	}
	for repo, in := range trouble {
		w.waiting(repo, in.says...)
		m.set(repo, nil)
	}
	w.waiting("stuck", "pulling image")
	w.running("slow")
	w.remove("stuck")
	w.running("cut", "denied", "missing", "busy", "broken")
	w.until("the pod whose pull was stuck is gone", func() error {
		if len(w.sandboxes("stuck")) > 0 {
			return fmt.Errorf("its sandbox is there")
		}
		return nil
	})
}
