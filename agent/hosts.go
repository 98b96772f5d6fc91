package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
)

// writeHosts writes the pod's /etc/hosts and returns its path. It is written
// in place, not by rename: running containers have this very file mounted.
func (w *worker) writeHosts(pod *v1.Pod, ips []string) (string, error) {
	if len(ips) == 0 && !pod.Spec.HostNetwork {
		return "", nil
	}
	path := filepath.Join(w.root.podDir(string(pod.UID)), "etc-hosts")
	text := etcHosts(pod, ips, w.machine.Now())
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return path, nil // a full disk would leave containers that run with an empty one
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return "", fmt.Errorf("hosts file: %w", err)
	}
	return path, nil
}
