package podspec

import (
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/volume"
	"monopod/cgroups"
)

// Host is what the translation of pods must know about the machine. It is
// shared and must not be changed once workers use it. The zero value of each
// setting is the kubelet's default.
type Host struct {
	Name     string
	Instance string // value of our mark on sandboxes and containers
	Root     string // agent's root directory
	PodLogs  string // root of the pod logs

	HostIPs   []string // primary first, at most one of each family
	HostsFile []byte   // the machine's /etc/hosts, for pods on its network
	Resolv    ResolvConf

	ClusterDNS    []string // servers of policy ClusterFirst; none: the machine's
	ClusterDomain string

	Memory      int64           // bytes of RAM: the measure of OOM scores
	Allocatable v1.ResourceList // stands in for limits a container does not set

	Cgroups              cgroups.Names // of the pods
	CgroupV2             bool
	SwapController       bool     // cgroups can limit swap, so pods get none
	HugePageSizes        []string // as cgroups name them: 2MB, 1GB
	PodPids              int64    // processes and threads of each pod; 0: no limit
	NoCFSQuota           bool     // do not enforce cpu limits
	CFSPeriod            int64    // microseconds; 0: 100000
	SingleProcessOOMKill bool     // kill one process, not the container (cgroup v2)

	SeccompDefault bool     // RuntimeDefault where a pod asks for nothing
	SELinux        bool     // relabel what containers mount
	MaskedPaths    []string // masked besides the usual ones, such as thermal_throttle
}

// Input is what the start of a container found out before its
// message to the runtime can be written.
type Input struct {
	Attempt uint32 // restart count
	BackOff string // kept on the container when not empty
	Image   string // reference that the pull step gave

	ImageUID      *int64 // user of the image, as imageUser tells
	ImageUsername string

	PodIPs []string // the sandbox's addresses; pods on the machine's network have the machine's

	Volumes  map[string]volume.Mount // by volume name
	SubPaths map[int]string          // host path by index in volumeMounts, where one asks for a subPath

	VolumeImages map[string]string // references to create the container with, by image volume; their SubPaths are in the image

	HostsPath          string // file for /etc/hosts; "": none
	TerminationLogPath string // file for the termination message; "": none

	RecursiveReadOnly bool // the runtime's handler can mount read-only all the way down
}

// ContainerConfig translates one container of a pod, init containers included.
// An error is what the kubelet reports as CreateContainerConfigError.
func ContainerConfig(p *v1.Pod, c *v1.Container, in Input, n *Host) (*rt.ContainerConfig, error) {
	env, err := environment(p, c, in, n)
	if err != nil {
		return nil, err
	}
	command, err := env.ExpandAll("command", c.Command)
	if err != nil {
		return nil, err
	}
	args, err := env.ExpandAll("args", c.Args)
	if err != nil {
		return nil, err
	}
	mounts, err := containerMounts(p, c, in, n)
	if err != nil {
		return nil, err
	}
	if err := checkNonRoot(p, c, in); err != nil {
		return nil, err
	}
	security, err := containerSecurity(p, c, in, n)
	if err != nil {
		return nil, err
	}
	annotations, err := containerAnnotations(p, c, in)
	if err != nil {
		return nil, err
	}
	return &rt.ContainerConfig{
		Metadata:    &rt.ContainerMetadata{Name: c.Name, Attempt: in.Attempt},
		Image:       &rt.ImageSpec{Image: in.Image, UserSpecifiedImage: c.Image},
		Command:     command,
		Args:        args,
		WorkingDir:  c.WorkingDir,
		Envs:        env.list(),
		Mounts:      mounts,
		Labels:      containerLabels(p, c, n),
		Annotations: annotations,
		LogPath:     LogPath(c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(c),
		Linux: &rt.LinuxContainerConfig{
			Resources:       containerResources(p, c, n),
			SecurityContext: security,
		},
	}, nil
}

// stopSignal returns the signal that ends the container. The kubelet still
// ignores the field; here it is honoured.
func stopSignal(c *v1.Container) rt.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return rt.Signal_RUNTIME_DEFAULT
	}
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(*c.Lifecycle.StopSignal))
	return rt.Signal(rt.Signal_value[name])
}

// ImageUser returns the user that an image wants to run as: a number, or a
// name with a nil number. An image that wants nothing, or nil, runs as root.
func ImageUser(i *rt.Image) (uid *int64, name string) {
	switch {
	case i.GetUid() != nil:
		return new(i.GetUid().GetValue()), ""
	case i.GetUsername() != "":
		return nil, i.GetUsername()
	default:
		return new(int64(0)), ""
	}
}

// seccompPath returns the absolute path of a Localhost profile.
func seccompPath(root, profile string) string { return filepath.Join(root, "seccomp", profile) }
