package instance

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/agent/volume"
)

// WriteHosts writes the pod's /etc/hosts and returns its path. Running
// containers have this very file mounted and may change it: a file with the
// right content stays as it is, also on a full disk.
func (f *Files) WriteHosts(pod *v1.Pod, ips []string) (string, error) {
	if len(ips) == 0 && !pod.Spec.HostNetwork {
		return "", nil
	}
	f.settingUp.Lock()
	defer f.settingUp.Unlock()
	path := volume.HostsPath(f.Root.Dir, string(pod.UID))
	if err := f.Hosts.Write(path, pod, ips, podspec.EtcHosts(pod, ips, f.Machine.Now())); err != nil {
		return "", fmt.Errorf("hosts file: %w", err)
	}
	return path, nil
}
