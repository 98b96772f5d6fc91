package instance

import (
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/disk"
	"monopod/agent/podspec"
	"monopod/agent/volume"
)

// WriteHosts writes the pod's /etc/hosts for a container and returns its path. Running containers
// have this very file mounted and may change it: a file with the right content stays as it is,
// also on a full disk. If the disk takes no new one, the container has the previous one or,
// without any, "", the runtime's.
func (f *Files) WriteHosts(pod *v1.Pod, container string, ips []string) (string, error) {
	if len(ips) == 0 && !pod.Spec.HostNetwork {
		return "", nil
	}
	f.settingUp.Lock()
	defer f.settingUp.Unlock()
	path := volume.HostsPath(f.Disk.Root.Dir, string(pod.UID))
	err := f.Disk.Hosts.Write(path, pod, ips, podspec.EtcHosts(pod, ips, f.Disk.Machine.Now()))
	isTaken := !disk.Unwritable(err)
	if err != nil && isTaken {
		return "", fmt.Errorf("hosts file: %w", err)
	}
	f.complain("hosts file is not written; the container has the one of before, or the runtime's", container, err)
	_, missing := os.Lstat(path)
	if missing != nil {
		return "", nil
	}
	return path, nil
}

// WriteResolvConf writes the pod's /etc/resolv.conf for a container and returns its path; "": the
// container has the one that the runtime made for the sandbox, as it has if the disk takes none.
func (f *Files) WriteResolvConf(pod *v1.Pod, container string) (string, error) {
	f.settingUp.Lock()
	defer f.settingUp.Unlock()
	path, err := f.Disk.Resolv.Write(pod)
	if path == "" && err == nil {
		return "", nil
	}
	if err != nil && !disk.Unwritable(err) {
		return "", fmt.Errorf("resolv.conf: %w", err)
	}
	f.complain("resolv.conf is not written; the container has the one of before, or the runtime's", container, err)
	if _, missing := os.Lstat(path); missing != nil {
		return "", nil
	}
	return path, nil
}
