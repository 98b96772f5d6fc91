package agent

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/agent/image"
	"monopod/agent/logs"
	"monopod/agent/server"
	"monopod/cgroups"
	"monopod/cri"
	"monopod/manifests"
)

// startsPerCore bounds how many sandboxes and containers are started at once:
// runtimes slow down beyond.
const startsPerCore = 4

// defaultPodLogs is where the kubelet has the containers' logs, too.
const defaultPodLogs = "/var/log/pods"

// Config is the settings of an agent. Zero values mean the default given.
type Config struct {
	Manifests    string        // folder or file of manifests; must be given
	Endpoint     string        // CRI endpoint, unix:///path; default: whichever of cri.WellKnown answers
	Root         string        // default /var/lib/monopod
	PodLogs      string        // default /var/log/pods
	LogLinks     string        // folder of links by container for log shippers; default /var/log/containers beside the default PodLogs, else none
	NodeName     string        // default: the host's name
	Listen       string        // TCP address, "" = none
	Socket       string        // default /run/monopod.sock
	Access       server.Access // to Listen
	ResolvConf   string        // default /etc/resolv.conf
	CgroupDriver string        // auto, cgroupfs, systemd or none; default auto: the runtime's
	CgroupRoot   string        // the cgroup that holds kubepods; default /
	// FallbackDriver is what auto takes from a runtime that does not say its
	// driver: cgroupfs or systemd; default cgroupfs.
	FallbackDriver string
	StartsAtOnce   int // sandboxes and containers being started at the same time; default 4 per core

	RuntimeClasses map[string]string // what runtimeClassName stands for: the runtime's handlers by name of the class

	NodeLabels map[string]string // besides those that every node has; wins over them
	// AllowedUnsafeSysctls are kernel settings that pods may change beyond the
	// safe ones: names, or prefixes that end in *. All must be a pod's own.
	AllowedUnsafeSysctls []string

	Validation   string // of manifests' fields: Strict, Warn or Ignore; default Strict
	NoNameSuffix bool   // pods are called as their manifest says, without the node's name
	BackOff      BackOff
	ImagePulls   int // at the same time; default image.Parallel

	Logs           logs.Config // how much the logs of a running container may take
	DeadContainers int         // kept of each container of a pod, the newest; at least and by default 1

	Reserved Reservations
	// Pressure is what shall be left: with less the node reports pressure. By the
	// signals of KubeletConfiguration's evictionHard; default the kubelet's.
	Pressure    map[string]Threshold
	MaxPods     int64 // on the node; default 110
	PodsPerCore int64 // bounds them too; 0: does not
	PodPids     int64 // processes and threads of each pod; 0: no limit

	NoResolvConf  bool     // pods get this machine as name server, not ResolvConf's
	ClusterDNS    []string // name servers of pods with policy ClusterFirst; none: the machine's
	ClusterDomain string

	SeccompDefault       bool          // RuntimeDefault where a pod asks for nothing
	NoCFSQuota           bool          // do not enforce cpu limits
	CFSPeriod            time.Duration // in which they count; default 100 ms
	SingleProcessOOMKill bool          // memory's end kills one process, not the container (cgroup v2)
	FailSwapOn           bool          // refuse to start on a machine with swap

	Images ImageConfig

	Once *Once // this agent stays for one run of its pods; nil: it keeps those of Manifests

	LogLevel slog.Level     // the least that is logged
	Level    *slog.LevelVar // follows LogLevel; nil: nothing does

	Reread *Reread // nil: the settings are read once

	Version string
	Log     *slog.Logger
}

// complete returns the settings with defaults filled in and paths made
// absolute, or a sentence about the first that cannot be.
func (c Config) complete() (Config, error) {
	if c.Manifests == "" && c.Once == nil {
		return c, fmt.Errorf("no manifest folder given: say which with --manifests DIR")
	}
	if c.NodeName == "" {
		host, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("node name: %w; give one with --node-name", err)
		}
		c.NodeName = host
	}
	c.NodeName = strings.ToLower(strings.TrimSpace(c.NodeName))
	if bad := validation.IsDNS1123Subdomain(c.NodeName); len(bad) > 0 {
		return c, fmt.Errorf("node name %q: %s; give another with --node-name", c.NodeName, bad[0])
	}
	if err := errors.Join(c.checkNode(), c.checkSwap("/proc/swaps")); err != nil {
		return c, err
	}
	var err error
	if c.Images, err = c.Images.complete(); err != nil {
		return c, err
	}
	if (c.PodLogs == "" || c.PodLogs == defaultPodLogs) && c.LogLinks == "" {
		c.LogLinks = "/var/log/containers"
	}
	if err := c.completePaths(); err != nil {
		return c, err
	}
	if c.CgroupDriver == "" {
		c.CgroupDriver = driverAuto
	}
	if !slices.Contains(cgroupDrivers, c.CgroupDriver) {
		return c, fmt.Errorf("--cgroup-driver %q: choose %s", c.CgroupDriver, strings.Join(cgroupDrivers, ", "))
	}
	c.CgroupRoot = filepath.Join("/", c.CgroupRoot)
	if c.StartsAtOnce <= 0 {
		c.StartsAtOnce = startsPerCore * runtime.NumCPU()
	}
	c.ImagePulls = cmp.Or(c.ImagePulls, image.Parallel)
	c.Logs = c.Logs.Complete()
	c.DeadContainers = max(c.DeadContainers, 1)
	c.FallbackDriver = cmp.Or(c.FallbackDriver, string(cgroups.Cgroupfs))
	c.Validation = cmp.Or(c.Validation, "Strict")
	c.MaxPods = cmp.Or(c.MaxPods, maxPods)
	if c.Pressure == nil {
		c.Pressure = defaultPressure()
	}
	c.CFSPeriod = cmp.Or(c.CFSPeriod, cgroups.DefaultPeriod*time.Microsecond)
	c.Access.MinVersion = cmp.Or(c.Access.MinVersion, tls.VersionTLS12)
	c.BackOff = c.BackOff.or(backOffFirst, backOffMax)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Once != nil { // which shares no path with another agent, and serves nobody
		c.Manifests, c.Listen, c.Socket, c.LogLinks = "", "", "", ""
	}
	return c, nil
}

func (c *Config) completePaths() error {
	for path, fallback := range map[*string]string{
		&c.Root: "/var/lib/monopod", &c.PodLogs: defaultPodLogs,
		&c.Socket: "/run/monopod.sock", &c.ResolvConf: "/etc/resolv.conf", &c.Manifests: "",
	} {
		if *path == "" {
			*path = fallback
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("%s: %w", *path, err)
		}
		*path = abs
	}
	return nil
}

// checkNode checks what pods are admitted by.
func (c Config) checkNode() error {
	for key, value := range c.NodeLabels {
		bad := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if len(bad) > 0 {
			return fmt.Errorf("node label %s=%s: %s; see --node-labels", key, value, bad[0])
		}
	}
	for _, s := range c.AllowedUnsafeSysctls {
		if manifests.SysctlNamespace(s) == "" {
			return fmt.Errorf("sysctl %q is the whole machine's and cannot be allowed to pods", s)
		}
	}
	return nil
}

// checkSwap refuses a machine with swap where that is asked for. The file's
// first line is a heading.
func (c Config) checkSwap(swaps string) error {
	if !c.FailSwapOn {
		return nil
	}
	b, err := os.ReadFile(swaps)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without swap has no such file
		return fmt.Errorf("whether the machine has swap: %w", err)
	}
	if bytes.Count(bytes.TrimSpace(b), []byte("\n")) > 0 {
		return errors.New("the machine has swap and failSwapOn is true: turn swap off or the setting")
	}
	return nil
}

// podsOn returns how many pods a node with that many cores holds.
func (c Config) podsOn(cores int64) int64 {
	most := cmp.Or(c.MaxPods, maxPods)
	if c.PodsPerCore > 0 {
		return min(most, c.PodsPerCore*cores)
	}
	return most
}

func (c Config) manifestOptions() manifests.Options {
	return manifests.Options{NodeName: c.NodeName, NameSuffix: !c.NoNameSuffix, Validation: c.Validation, RuntimeClasses: c.RuntimeClasses}
}

// endpoints returns where the runtime may be.
func (c Config) endpoints() []string {
	if c.Endpoint == "" {
		return cri.WellKnown()
	}
	return []string{c.Endpoint}
}
