// Package config is the table of monopod's settings (rows), and what follows from it: the values
// of a file of settings and of flags, their documentation, and the differences between two of
// them. A new setting is a field of Config and a row.
package config

import (
	"log/slog"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/manifests/decode"
)

// Config is the settings, as in a file of them; see the table for what they mean. Paths are
// absolute. Default and Read make one, with no setting left out.
type Config struct {
	Manifests         Folders // the lowest first; none: no folder
	InsecureManifests bool
	RemovalSettle     time.Duration
	ManifestURL       string // "": none; it may hold secrets, as its headers do
	NodeName          string // "": the host's name
	PodNameSuffix     bool
	NodeLabels        map[string]string
	Validation        string
	Endpoint          string // "": the first that exists
	ManagedRuntime    bool
	RuntimeClasses    map[string]string
	Root              string
	PodLogs           string
	Listen            string // "": none
	NodeIP            string // addresses with a comma between; "": that of the default route
	PodResources      bool   // whether clients of a kubelet may ask what containers have for themselves
	HealthzPort       int    // of a TCP address that serves /healthz alone; 0: none
	HealthzAddress    string // its IP address, of the loopback
	Socket            string

	ManifestURLHeader                                                map[string]Header
	ManifestURLEvery                                                 time.Duration
	ManifestURLCA, ManifestURLCert, ManifestURLKey, ManifestURLToken string
	ManifestURLPublicKey                                             string // as signature.Text writes it; "": none

	TLSCert, TLSKey string
	TLSCiphers      []string // by Go's names
	TLSMinVersion   string
	ClientCA        string
	Tokens          string
	LogLevel        string

	ResolvConf    string // "": this machine is the name server
	ClusterDNS    []string
	ClusterDomain string

	// CgroupDriver decides, and is auto if a file has cgroupfs or systemd: that becomes
	// FallbackDriver, for runtimes that do not report their own; "" is cgroupfs.
	CgroupDriver, FallbackDriver string
	CgroupRoot                   string
	CgroupsPerQOS                bool // that CgroupDriver is not none
	Enforce                      []string
	SystemReserved, KubeReserved v1.ResourceList
	SystemReservedCgroup         string
	KubeReservedCgroup           string
	EvictionHard                 map[string]string // Threshold reads them
	MaxPods, PodsPerCore         int64
	PodPids                      int64 // below 1: no limit
	CFSQuota                     bool
	CFSPeriod                    time.Duration
	CPUPolicy                    string            // none or static
	CPUOptions                   map[string]string // of static
	CPUEvery                     time.Duration
	ReservedCPUs                 string            // a list such as 0-1,8; "": none in particular
	Devices                      map[string]Device // by the resource that stands for them
	SingleProcessOOMKill         bool
	FailSwapOn                   bool

	SeccompDefault       bool
	AllowedUnsafeSysctls []string

	BackOffFirst, BackOffMax time.Duration
	SerializePulls           bool // that ImagePulls is 1
	ImagePulls               int
	PullQPS, PullBurst       int

	ImageDirs                  string // folders of archives, with commas between; "": images in Root
	ImageGCHigh, ImageGCLow    int
	ImageMinAge, ImageMaxAge   time.Duration
	CredentialProviders        string // a CredentialProviderConfig, or a folder of such
	CredentialProviderPrograms string // the folder of the programs that it names
	LogMaxSize                 resource.Quantity
	LogMaxFiles, LogMaxWorkers int
	LogInterval                time.Duration
	DeadContainers             int
	KeepEndedVolumes           bool
	PodHosts                   bool
	FollowResolvConf           bool
	UpdateStrategy             string
	FollowImages               time.Duration // 0: tags are not followed

	UpdateHealth, UpdateStable time.Duration // UpdateHealth 0: whether a new version gets ready does not matter
	UpdatePolicy               string
	UpdateWindow               string
	UpdateLockMax              time.Duration
	ShutdownGrace              time.Duration // of all pods, in it ShutdownGraceCritical; 0: see ShutdownByPriority
	ShutdownGraceCritical      time.Duration
	ShutdownByPriority         []ShutdownPriority

	// Absent is what the file requests that does not exist here. An agent that is new refuses it;
	// one that ran before shows it.
	Absent []decode.Problem
}

// ShutdownPriority is how long pods with this priority, or one above it that is below the next,
// may take to end when the machine is shut down.
type ShutdownPriority struct {
	Priority int32 `json:"priority"`
	Seconds  int64 `json:"shutdownGracePeriodSeconds"`
}

// Device is the devices of which the settings make a resource. The zero value of a field is its
// default.
type Device struct {
	Paths       []string `json:"paths,omitempty"`
	CDI         []string `json:"cdi,omitempty"`
	Permissions string   `json:"permissions,omitempty"` // "": rw
	Count       int      `json:"count,omitempty"`       // how many containers may have one at a time; 0: one
	Shared      bool     `json:"shared,omitempty"`      // any number may
}

// DefaultPodLogs is the folder of the containers' logs, as for the kubelet.
const DefaultPodLogs = "/var/log/pods"

// AllPulls is the number of simultaneous image pulls if it is not limited.
const AllPulls = math.MaxInt32

// Default returns the settings with no value given.
func Default() Config {
	var c Config
	for _, r := range rows(&c) {
		r.set(nil)
	}
	return c
}

// Level is LogLevel.
func (c Config) Level() slog.Level {
	var level slog.Level
	level.UnmarshalText([]byte(c.LogLevel)) // the table has checked it
	return level
}
