package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Versions of runtimes that a rig can start.
const (
	Distro = "distro" // the containerd that the distribution installed
	Latest = "2.4.2"  // a containerd that `make deps` builds; streams container events
	CRIO   = "crio"   // the CRI-O in the folder that MONOPOD_CRIO names
)

// Tested are the versions that everything is tested against, the one that the
// recordings are compared on last.
func Tested() []string {
	if crioFolder() != "" {
		return []string{CRIO}
	}
	return []string{Distro, Latest}
}

// Runtime is a private container runtime: its root, state, socket, monitors of
// containers and pod network are its own. Its methods are for one goroutine.
type Runtime struct {
	Version  string // Distro, Latest or CRIO
	Dir      string
	Endpoint string // unix://...
	Log      string
	CRI      *CRI
	kind     kind
	argv     []string
	env      []string // besides ours
	process  *Process
	hasCrun  bool
}

// kind is what a maker of runtimes calls things, and how its runtimes are told.
type kind struct {
	name   string // what the ids of containers in a status begin with
	cgroup string // what the names of containers' cgroups begin with, before the id
	// refuses says that it fails a command that cannot be run.
	refuses bool
	// streams says that archives of images may come by standard input.
	streams bool
	// pauses is how many processes a sandbox has of its own, without any container.
	pauses uint64
	// imageBytes is the least that it says its images take.
	imageBytes uint64
	// mirror has a runtime in dir ask addr, over plain http, for the images of host.
	mirror func(dir, host, addr string) error
	// keepsSecrets says that a mirror is not given the password for the host that it
	// stands for.
	keepsSecrets bool
	// grants says that it gives privileged containers all capabilities that the kernel knows,
	// and not those alone that it has itself.
	grants bool
	// lastWords are what it says of a fault of its own, once all that it stops for is done; "":
	// it has none.
	lastWords string
	// rereads says that a runtime looks for such files on SIGHUP, not at each pull.
	rereads bool
}

// newRuntime writes the configuration under dir, with network as pod network and
// registry as the source of all images. Start starts it.
func newRuntime(dir, version string, network *Network, registry string) (r *Runtime, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("configure %s: %w", version, err)
	}
	if version == CRIO {
		r, err = newCRIO(dir, network, registry)
	} else {
		r, err = newContainerd(dir, version, network, registry)
	}
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", version, err)
	}
	r.Version, r.Dir = version, dir
	r.CRI, err = DialCRI(r.Endpoint)
	return r, err
}

// Start starts the runtime and waits until its CRI Status is ready.
func (r *Runtime) Start(ctx context.Context) error {
	var err error
	if r.process, err = StartProcess(r.Log, r.env, r.argv...); err != nil {
		return err
	}
	return Until(ctx, 2*time.Minute, func() error {
		select {
		case <-r.process.Done():
			return Final(fmt.Errorf("%s ended: %w\n%s", filepath.Base(r.argv[0]), r.process.Err(), Tail(r.Log, 20)))
		default:
			return r.CRI.Ready(ctx)
		}
	})
}

// Kill ends the runtime with SIGKILL. Containers run on under their monitors.
func (r *Runtime) Kill() {
	if r.process != nil {
		r.process.Kill()
		r.process = nil
	}
}

// Stop ends the runtime with SIGTERM, or SIGKILL after a minute. Containers run on.
func (r *Runtime) Stop() error {
	if r.process == nil {
		return nil
	}
	err := r.process.Stop(time.Minute)
	r.process = nil
	if err != nil && r.kind.lastWords != "" && strings.Contains(Tail(r.Log, 15), r.kind.lastWords) {
		return nil
	}
	return err
}

// Running says whether the runtime was started and not stopped.
func (r *Runtime) Running() bool { return r.process != nil }

// Restart stops the runtime, as an upgrade does, and starts it again.
func (r *Runtime) Restart(ctx context.Context) error {
	return errors.Join(r.Stop(), r.Start(ctx))
}

// ContainerID is how a status names the container with that id.
func (r *Runtime) ContainerID(id string) string { return r.kind.name + "://" + id }

// Cgroup is the name of a container's cgroup, below that of its pod, where no
// systemd makes it.
func (r *Runtime) Cgroup(id string) string { return r.kind.cgroup + id }

// Pauses is how many processes a sandbox with namespaces of its own has, without any
// container.
func (r *Runtime) Pauses() uint64 { return r.kind.pauses }

// RefusesCommands says whether the runtime fails a command that cannot be run. Else its
// OCI runtime ends in the command's place.
func (r *Runtime) RefusesCommands() bool { return r.kind.refuses }

// UsesCrun says whether CRI-O has crun as its OCI runtime.
func (r *Runtime) UsesCrun() bool { return r.Version == CRIO && os.Getenv(envCRIORuntime) == "crun" }

// ImportsStreams says whether archives of images may come by standard input.
func (r *Runtime) ImportsStreams() bool { return r.kind.streams }

// ImageBytes is the least that the runtime says its images take.
func (r *Runtime) ImageBytes() uint64 { return r.kind.imageBytes }

// RunsPrivileged says whether the runtime can run privileged containers on this machine.
func (r *Runtime) RunsPrivileged() bool { return !r.kind.grants || hasAllCapabilities() }

// MountsImages says whether the runtime mounts images as volumes.
func (r *Runtime) MountsImages() bool { return r.Version != Distro }

// HasCDI says whether the runtime gives CDI devices to containers.
func (r *Runtime) HasCDI() bool { return r.Version != Distro }

// Serve has the runtime, which runs, ask addr, over plain http and with the passwords for
// it, for the images of a host: that one, or if a mirror has no passwords addr itself. It
// returns which.
func (r *Runtime) Serve(host, addr string) (string, error) {
	if r.kind.keepsSecrets {
		host = addr
	}
	if err := r.kind.mirror(r.Dir, host, addr); err != nil {
		return "", fmt.Errorf("serve images of %s: %w", host, err)
	}
	return host, r.reread()
}
