// Package podspec translates a v1.Pod into CRI sandbox and container configs and
// cgroup values.
package podspec

import (
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/agent/volume"
	"monopod/cgroups"
)

// Host is the data about the machine that the translation needs. It is shared and must not be
// changed once workers use it. The zero value of each setting is the kubelet's default.
type Host struct {
	Name     string
	Instance string // value of LabelInstance on our sandboxes and containers
	Root     string // agent's root directory
	PodLogs  string // root of the pod logs

	HostIPs   []string // primary first, at most one of each family
	HostsFile []byte   // the machine's /etc/hosts, for pods on its network
	Resolv    ResolvConf

	ClusterDNS    []string // servers of policy ClusterFirst; none: the machine's
	ClusterDomain string

	Memory      int64           // bytes of RAM, to which OOM scores relate
	Allocatable v1.ResourceList // for resource fields of containers without limits

	Cgroups              cgroups.Names // the names of the pods' cgroups
	CgroupV2             bool
	SwapController       bool     // cgroups can limit swap, so pods get none
	HugePageSizes        []string // as cgroups name them: 2MB, 1GB
	PodPids              int64    // processes and threads of each pod; 0: no limit
	NoCFSQuota           bool     // do not enforce cpu limits
	CFSPeriod            int64    // microseconds; 0: 100000
	ExclusiveCPUs        bool     // containers that request CPUs of their own have them, and no limit of cpu
	SingleProcessOOMKill bool     // kill one process, not the container (cgroup v2)

	SeccompDefault bool     // RuntimeDefault for pods without a profile
	SELinux        bool     // relabel mounts of containers
	MaskedPaths    []string // masked in addition to the defaults, such as thermal_throttle
}

// Input is what the start of a container determines before it writes the config for the runtime.
type Input struct {
	Attempt uint32 // restart count
	BackOff string // annotated on the container if not empty
	// Revision is the revision of the pod's version, annotated if it is not the first.
	Revision int
	Image    string // reference that the pull returned

	ImageUID      *int64 // user of the image, as ImageUser returns it
	ImageUsername string

	Objects    volume.Objects // the ConfigMaps and Secrets; nil: there are none
	EnvObjects string         // the objects that the variables are made of, as objects.Set.EnvOf has them; "": not recorded

	EnvFiles map[EnvFile]EnvFileContent // that the container's variables are read from

	PodIPs []string // of the sandbox; pods on the host network have those of the machine

	Volumes  map[string]volume.Mount // by volume name
	SubPaths map[int]string          // host paths of volumeMounts with a subPath, by index

	CPUs string // the CPUs on which it runs, such as 1-2,5; "": all

	Devices    []*rt.Device // of the machine
	CDIDevices []string     // full names of CDI devices

	VolumeImages map[string]string // references by image volume; their SubPaths are paths in the image

	HostsPath          string // file for /etc/hosts; "": none
	ResolvPath         string // file for /etc/resolv.conf; "": the runtime's
	TerminationLogPath string // file for the termination message; "": none

	RecursiveReadOnly bool // the runtime's handler supports recursive read-only mounts
}

// ContainerConfig translates one container of a pod, init containers included. The kubelet reports
// its errors as CreateContainerConfigError.
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
	resources := containerResources(p, c, n)
	resources.CpusetCpus = in.CPUs
	return &rt.ContainerConfig{
		Metadata:    &rt.ContainerMetadata{Name: c.Name, Attempt: in.Attempt},
		Image:       &rt.ImageSpec{Image: in.Image, UserSpecifiedImage: c.Image},
		Command:     command,
		Args:        args,
		WorkingDir:  c.WorkingDir,
		Envs:        env.list(),
		Mounts:      mounts,
		Devices:     in.Devices,
		CDIDevices:  cdiDevices(in.CDIDevices),
		Labels:      containerLabels(p, c, n),
		Annotations: annotations,
		LogPath:     LogPath(c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(c),
		Linux: &rt.LinuxContainerConfig{
			Resources:       resources,
			SecurityContext: security,
		},
	}, nil
}

func cdiDevices(names []string) (all []*rt.CDIDevice) {
	for _, name := range names {
		all = append(all, &rt.CDIDevice{Name: name})
	}
	return all
}

// stopSignal returns the signal that stops the container. The kubelet still ignores
// the field; monopod honours it.
func stopSignal(c *v1.Container) rt.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return rt.Signal_RUNTIME_DEFAULT
	}
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(*c.Lifecycle.StopSignal))
	return rt.Signal(rt.Signal_value[name])
}

// ImageUser returns the user of an image: a number, or a name with a nil number. It is root for an
// image without a user, and for nil.
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
