package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"monopod/agent/managed"
)

// Crun is the OCI runtime that containerds have beside runc where it is installed and new enough,
// and their handler for it.
const Crun = "crun"

// crunHandler is what the configuration of a containerd in dir says of crun; "" where that is not
// installed, or too old.
func crunHandler(dir string, v managed.Version) (toml string, err error) {
	path, err := exec.LookPath(Crun)
	if errors.Is(err, exec.ErrNotFound) {
		return "", nil
	}
	if err != nil || v.Major >= 2 && crunIsOld(path) {
		return "", err
	}
	if path, err = modest(dir, path); err != nil {
		return "", err
	}
	plugin := "io.containerd.cri.v1.runtime"
	if v.Major < 2 {
		plugin = "io.containerd.grpc.v1.cri"
	}
	return fmt.Sprintf(`[plugins."%[1]s".containerd.runtimes.crun]
  runtime_type = "io.containerd.runc.v2"
[plugins."%[1]s".containerd.runtimes.crun.options]
  BinaryName = "%[2]s"
  Root = "%[3]s"
  SystemdCgroup = %[4]v
`, plugin, path, filepath.Join(dir, crunRoot), systemdCgroups()), nil
}

// crunIsOld says whether crun is older than 1.15, and so runs nothing that containerd 2 makes: "unknown
// version specified".
func crunIsOld(path string) bool {
	out, err := output(exec.Command(path, "--version"))
	var major, minor int
	_, _ = fmt.Sscanf(out, "crun version %d.%d", &major, &minor)
	return err == nil && major == 1 && minor < 15
}

// crunRoot is the folder of a containerd's in which crun keeps the state of its containers.
const crunRoot = "crun"

// HasCrun says whether the runtime has a handler for crun beside that for runc.
func (r *Runtime) HasCrun() bool { return r.hasCrun }

// IsCruns says whether it is crun that made a container, which is there.
func (r *Runtime) IsCruns(id string) bool {
	_, err := os.Stat(filepath.Join(r.Dir, crunRoot, "k8s.io", id, "status"))
	return err == nil
}
