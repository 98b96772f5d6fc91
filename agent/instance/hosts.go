package instance

import (
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/agent/safefile"
)

// WriteHosts writes the pod's /etc/hosts and returns its path. Running
// containers have this very file mounted and may change it: a file with the
// right content stays as it is, also on a full disk, and any other is replaced
// for the containers that start from now on.
func (f *Files) WriteHosts(pod *v1.Pod, ips []string) (string, error) {
	if len(ips) == 0 && !pod.Spec.HostNetwork {
		return "", nil
	}
	f.settingUp.Lock()
	defer f.settingUp.Unlock()
	path := filepath.Join(f.Root.PodDir(string(pod.UID)), "etc-hosts")
	if err := safefile.WriteFile(path, podspec.EtcHosts(pod, ips, f.Machine.Now()), 0o644); err != nil {
		return "", fmt.Errorf("hosts file: %w", err)
	}
	return path, nil
}
