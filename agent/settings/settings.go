// Package settings derives the settings of each package from the Config, as values. A new setting
// is a field and a row of agent/config first.
package settings

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"monopod/agent/archives"
	"monopod/agent/checkpoint"
	"monopod/agent/config"
	"monopod/agent/cpus"
	"monopod/agent/devices"
	"monopod/agent/image"
	"monopod/agent/logrotate"
	"monopod/agent/managed"
	"monopod/agent/metrics"
	"monopod/agent/node"
	"monopod/agent/pinning"
	"monopod/agent/plan"
	"monopod/agent/rollout"
	"monopod/agent/server"
	"monopod/agent/shutdown"
	"monopod/agent/window"
	"monopod/cgroups"
	"monopod/cri"
	"monopod/manifests"
	"monopod/manifests/decode"
	"monopod/manifests/fetch"
	"monopod/manifests/layers"
	"monopod/manifests/signature"
)

// Complete returns the settings with the values of this machine filled in. The error is a sentence
// that explains why the agent cannot start with them. An agent of one run reads no folder and has
// no endpoint.
func Complete(c config.Config, once bool) (config.Config, error) {
	if len(c.Manifests) == 0 && c.ManifestURL == "" && !once {
		return c, &server.SettingsError{Text: "no manifests given: say in which folder they are with --manifests DIR, or what gives them with --manifest-url URL"}
	}
	if err := checkTogether(c); err != nil {
		return c, err
	}
	if err := checkWriters(c, once); err != nil {
		return c, err
	}
	if err := checkAbsent(c, once); err != nil {
		return c, err
	}
	if c.ManagedRuntime && c.FallbackDriver == "" && managed.SystemdCgroups() {
		c.FallbackDriver = string(cgroups.Systemd) // of the runtime and of the agent: containerd 1.6 does not tell its own
	}
	var err error
	if c.NodeName, err = NodeName(c, once); err != nil {
		return c, fmt.Errorf("node name: %w; give one with --node-name", err)
	}
	if bad := validation.IsDNS1123Subdomain(c.NodeName); len(bad) > 0 {
		return c, &server.SettingsError{Text: fmt.Sprintf("node name %q: %s; give another with --node-name", c.NodeName, bad[0])}
	}
	c.ManifestURL = manifests.NodeURL(c.ManifestURL, c.NodeName)
	if c.FailSwapOn {
		if err := checkSwap("/proc/swaps"); err != nil {
			return c, err
		}
	}
	if once {
		c.Manifests, c.ManifestURL, c.Listen, c.Socket = nil, "", "", ""
		c.HealthzPort, c.PodResources = 0, false
		c.KeepEndedVolumes = true // until the run is over: the output of its pods may still be needed
		c.PodHosts = true         // as in docker compose
	}
	return c, nil
}

// Check returns why an agent starts with these settings on no machine, in words for the reader of a
// file of them; nil: on some it may. It looks at nothing of this machine.
func Check(c config.Config) error {
	if err := checkTogether(c); err != nil {
		return err
	}
	access := Access(c)
	if err := access.Check(c.Listen); err != nil {
		return err
	}
	policy := Pinning(c, false).Policy
	if err := policy.CheckReserved(); err != nil {
		return &server.SettingsError{Text: "cpuManagerPolicy static: " + err.Error()}
	}
	return nil
}

// checkTogether refuses settings that contradict each other.
func checkTogether(c config.Config) error {
	if err := layers.Check(c.Manifests); err != nil {
		return &server.SettingsError{Text: "--manifests: " + err.Error()}
	}
	if err := manifests.CheckURL(c.ManifestURL); err != nil {
		return &server.SettingsError{Text: "--manifest-url: " + err.Error()}
	}
	if err := signature.CheckPublicKey(c.ManifestURLPublicKey); err != nil {
		return &server.SettingsError{Text: "manifestURLPublicKey: " + err.Error()}
	}
	if (c.ManifestURLCert == "") != (c.ManifestURLKey == "") {
		return &server.SettingsError{Text: "manifestURLCertFile and manifestURLPrivateKeyFile belong together: give both or none"}
	}
	if c.CPUPolicy == cpus.None && len(c.CPUOptions) > 0 { // as a kubelet
		return &server.SettingsError{Text: "cpuManagerPolicyOptions mean nothing to cpuManagerPolicy none: leave them out, or choose static"}
	}
	if c.ManagedRuntime && c.Endpoint != "" {
		return &server.SettingsError{Text: managed.ErrTwo.Error()}
	}
	return checkExposed(c)
}

// NodeName returns the name of the node: the one given, or the one recorded in its root dir, or the
// host name. Names of pods contain it, so that another host name would replace all pods.
func NodeName(c config.Config, once bool) (name string, err error) {
	name = c.NodeName
	if name == "" && !once {
		name, err = checkpoint.NodeName(c.Root)
	}
	if name == "" && err == nil {
		name, err = os.Hostname()
	}
	return strings.ToLower(strings.TrimSpace(name)), err
}

// checkExposed refuses credentials that others could read on their way to the URL.
func checkExposed(c config.Config) error {
	host := fetch.ExposedTo(c.ManifestURL)
	setting, what := "", ""
	for name := range c.ManifestURLHeader {
		if strings.EqualFold(name, "Authorization") {
			setting, what = "staticPodURLHeader", "Authorization header"
		}
	}
	if c.ManifestURLToken != "" {
		setting, what = "manifestURLTokenFile", "token"
	}
	if host == "" || what == "" {
		return nil
	}
	return &server.SettingsError{Text: fmt.Sprintf("%s: the %s would go to %s unencrypted, where others can read it: "+
		"give an https:// URL with --manifest-url, or leave the %[2]s out", setting, what, host)}
}

// checkSwap refuses a machine with swap.
func checkSwap(swaps string) error {
	has, err := node.HasSwap(swaps)
	if err == nil && has {
		err = errors.New("the machine has swap and failSwapOn is true: turn swap off or the setting")
	}
	return err
}

// Endpoints returns the addresses at which the runtime may listen: of those that are looked at by
// themselves, the one that an agent of the root dir has used in this boot, if any. Its pods run there.
func Endpoints(c config.Config) []string {
	switch {
	case c.ManagedRuntime:
		return []string{managed.Endpoint(c.Root)}
	case c.Endpoint != "":
		return []string{c.Endpoint}
	}
	known, used := cri.WellKnown(), checkpoint.UsedRuntime(c.Root, checkpoint.ReadBoot())
	if slices.Contains(known, used) {
		return []string{used}
	}
	return known
}

// Managed returns the settings, completed, of the runtime that the agent starts.
func Managed(c config.Config, once bool) managed.Settings {
	driver := c.CgroupDriver
	if driver == node.DriverAuto {
		driver = c.FallbackDriver
	}
	return managed.Settings{
		Root: c.Root, Service: !once && managed.UnderSystemd(),
		Systemd: driver == string(cgroups.Systemd), Resolv: c.ResolvConf,
	}
}

// LogLinks returns the folder of links to container logs for log shippers; "" for none: only the
// default log folder has one.
func LogLinks(c config.Config, once bool) string {
	if c.PodLogs != config.DefaultPodLogs || once {
		return ""
	}
	return "/var/log/containers"
}

func Manifests(c config.Config) manifests.Options {
	return manifests.Options{NodeName: c.NodeName, NameSuffix: c.PodNameSuffix, Validation: c.Validation, RuntimeClasses: c.RuntimeClasses}
}

func Fetch(c config.Config, known *manifests.Answer) fetch.Settings {
	s := fetch.Settings{URL: c.ManifestURL, Every: c.ManifestURLEvery, Known: known, Headers: map[string][]string{},
		CAFile: c.ManifestURLCA, CertFile: c.ManifestURLCert, KeyFile: c.ManifestURLKey, TokenFile: c.ManifestURLToken, Node: c.NodeName}
	if c.ManifestURLPublicKey != "" {
		s.PublicKey, _ = signature.ParsePublicKey(c.ManifestURLPublicKey) // Complete has checked it
	}
	for name, values := range c.ManifestURLHeader {
		s.Headers[name] = values
	}
	return s
}

// NameSuffix returns what monopod appends to the names of pods.
func NameSuffix(c config.Config) string {
	if !c.PodNameSuffix {
		return ""
	}
	return "-" + c.NodeName
}

func Access(c config.Config) server.Access {
	a := server.Access{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.ClientCA, Tokens: c.Tokens, MinVersion: tls.VersionTLS12}
	if c.TLSMinVersion == "VersionTLS13" {
		a.MinVersion = tls.VersionTLS13
	}
	for _, suite := range tls.CipherSuites() {
		if slices.Contains(c.TLSCiphers, suite.Name) {
			a.CipherSuites = append(a.CipherSuites, suite.ID)
		}
	}
	return a
}

func Node(c config.Config) node.NodeSettings {
	free, pressure := Thresholds(c.EvictionHard)
	system, own := reserved(c)
	return node.NodeSettings{
		NodeName: c.NodeName, Root: c.Root, PodLogs: c.PodLogs,
		NodeLabels: c.NodeLabels, AllowedUnsafeSysctls: c.AllowedUnsafeSysctls,
		Reserved: node.Reservations{System: system, Agent: own, Free: free, Unenforced: !slices.Contains(c.Enforce, config.EnforcePods), Held: held(c, system, own)},
		Pressure: pressure, MaxPods: c.MaxPods, PodsPerCore: c.PodsPerCore, PodPids: max(c.PodPids, 0),
		IPs:        nodeIPs(c.NodeIP),
		ResolvConf: c.ResolvConf, ClusterDNS: c.ClusterDNS, ClusterDomain: c.ClusterDomain,
		SeccompDefault: c.SeccompDefault, NoCFSQuota: !c.CFSQuota, CFSPeriod: c.CFSPeriod, ExclusiveCPUs: c.CPUPolicy == cpus.Static, SingleProcessOOMKill: c.SingleProcessOOMKill,
		CgroupDriver: cmp.Or(c.CgroupDriver, node.DriverAuto), FallbackDriver: c.FallbackDriver, CgroupRoot: c.CgroupRoot,
	}
}

// nodeIPs returns the addresses of nodeIP.
func nodeIPs(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// held returns the processes outside of pods that are held to what is reserved for them: by all of
// it, or only by what can be taken back from them at any time, the cpu.
func held(c config.Config, system, own v1.ResourceList) (all []node.Held) {
	for _, h := range []node.Held{
		{Setting: "systemReservedCgroup", Level: config.EnforceSystem, Cgroup: c.SystemReservedCgroup, Amounts: system},
		{Setting: "kubeReservedCgroup", Level: config.EnforceAgent, Cgroup: c.KubeReservedCgroup, Amounts: own},
	} {
		cpu := v1.ResourceList{v1.ResourceCPU: h.Amounts[v1.ResourceCPU]}
		if slices.Contains(c.Enforce, h.Level+config.Compressible) {
			h.Level, h.Amounts = h.Level+config.Compressible, cpu
		} else if !slices.Contains(c.Enforce, h.Level) {
			continue
		}
		all = append(all, h)
	}
	return all
}

// reserved returns what is reserved for the system and for the agent. Reserved CPUs that are listed
// count in place of amounts of cpu, as in a kubelet.
func reserved(c config.Config) (system, own v1.ResourceList) {
	listed, _ := cpus.Parse(c.ReservedCPUs) // the settings were checked
	if len(listed) == 0 {
		return c.SystemReserved, c.KubeReserved
	}
	system, own = v1.ResourceList{}, maps.Clone(c.KubeReserved)
	maps.Copy(system, c.SystemReserved)
	system[v1.ResourceCPU] = *resource.NewQuantity(int64(len(listed)), resource.DecimalSI)
	delete(own, v1.ResourceCPU)
	return system, own
}

// Pinning returns the settings of the CPUs of containers. An agent of one run shares the machine
// with another agent, and assigns none.
func Pinning(c config.Config, once bool) pinning.Settings {
	s := pinning.Settings{Policy: cpus.Settings{Policy: c.CPUPolicy, Options: c.CPUOptions}, Every: c.CPUEvery,
		System: cpus.System, Path: filepath.Join(c.Root, "cpu_manager_state")}
	if once {
		s.Policy.Policy = cpus.None
	}
	s.Policy.Listed, _ = cpus.Parse(c.ReservedCPUs) // the settings were checked
	system, own := reserved(c)
	for _, list := range []v1.ResourceList{system, own} {
		if cpu, has := list[v1.ResourceCPU]; has {
			sum := cpu.DeepCopy()
			if s.Policy.Reserved != nil {
				sum.Add(*s.Policy.Reserved)
			}
			s.Policy.Reserved = &sum
		}
	}
	return s
}

// Devices returns the resources that the settings make of devices.
func Devices(c config.Config) devices.Settings {
	s := devices.Settings{Resources: map[string]devices.Resource{}, SpecDirs: devices.SpecDirs, Path: filepath.Join(c.Root, "devices.json")}
	for name, d := range c.Devices {
		r := devices.Resource{Paths: d.Paths, CDI: d.CDI, Permissions: cmp.Or(d.Permissions, "rw"), Count: max(d.Count, 1)}
		if d.Shared {
			r.Count = 0
		}
		s.Resources[name] = r
	}
	return s
}

// Thresholds returns, from evictionHard, the resources that are reserved from pods, and the
// thresholds of the node's pressure conditions: the kubelet's defaults if it is empty.
func Thresholds(evictionHard map[string]string) (free map[v1.ResourceName]node.Threshold, pressure map[string]node.Threshold) {
	if len(evictionHard) == 0 {
		return nil, node.DefaultPressure()
	}
	kept := map[string]v1.ResourceName{"memory.available": v1.ResourceMemory, "nodefs.available": v1.ResourceEphemeralStorage}
	free, pressure = map[v1.ResourceName]node.Threshold{}, map[string]node.Threshold{}
	for signal, text := range evictionHard {
		amount, share, err := config.Threshold(text)
		if err != nil || amount.IsZero() && share == 0 || node.PressureOf[signal] == "" {
			continue
		}
		pressure[signal] = node.Threshold{Amount: amount, Share: share}
		if name := kept[signal]; name != "" {
			free[name] = pressure[signal]
		}
	}
	return free, pressure
}

func Plans(c config.Config) plan.PlanSettings {
	return plan.PlanSettings{BackOff: plan.BackOff{First: c.BackOffFirst, Max: c.BackOffMax},
		DeadContainers: c.DeadContainers, KeepVolumes: c.KeepEndedVolumes, UpdatePolicy: c.UpdatePolicy}
}

func Logs(c config.Config) logrotate.Config {
	return logrotate.Config{MaxSize: c.LogMaxSize.Value(), MaxFiles: c.LogMaxFiles, Workers: c.LogMaxWorkers, Interval: c.LogInterval}
}

func Images(c config.Config) image.Limits {
	return image.Limits{High: c.ImageGCHigh, Low: c.ImageGCLow, MinAge: c.ImageMinAge, MaxAge: c.ImageMaxAge}
}

// Archives returns the settings of image archives.
func Archives(c config.Config) archives.Config {
	a := archives.Config{Dirs: strings.FieldsFunc(c.ImageDirs, func(r rune) bool { return r == ',' }), Insecure: c.InsecureManifests}
	if len(a.Dirs) == 0 {
		a.Made = filepath.Join(c.Root, "images")
		a.Dirs = []string{a.Made}
	}
	a.Record = filepath.Join(c.Root, "archives.json")
	return a
}

// Pulls returns the settings of image pulls.
func Pulls(c config.Config, k *image.Keyring, m *metrics.Metrics, once bool) image.Config {
	pulls := image.Config{Parallel: c.ImagePulls, QPS: c.PullQPS, Burst: c.PullBurst, Keyring: k, Pulled: m.Pulled, Log: k.Log}
	if once { // an agent of one run has no next boot, and would wait for the disk at its end
		pulls.SyncFS = func(string) error { return nil }
	}
	return pulls
}

// Keyring returns the node's credentials for registries.
func Keyring(c config.Config, log *slog.Logger) (*image.Keyring, error) {
	plugins, err := image.LoadPlugins(c.CredentialProviders, c.CredentialProviderPrograms, log)
	if err != nil {
		return nil, &server.SettingsError{Text: err.Error()}
	}
	return &image.Keyring{Root: c.Root, Home: os.Getenv("HOME"), Plugins: plugins, Log: log}, nil
}

// checkWriters refuses manifests that other users may write, for a new agent. An agent that ran
// before starts, and reports this with its other problems: a refusal would leave its pods without
// an agent.
func checkWriters(c config.Config, once bool) error {
	if once || c.InsecureManifests || !checkpoint.IsNew(c.Root) {
		return nil
	}
	var all []decode.Problem
	for _, dir := range c.Manifests {
		all = append(all, manifests.Writable(dir, c.Root)...)
	}
	if len(all) == 0 {
		return nil
	}
	more := ""
	if len(all) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(all)-1)
	}
	return &server.SettingsError{Text: fmt.Sprintf("%s %s%s; or accept it with allowInsecureManifests: true", all[0].File, all[0].Message, more)}
}

// checkAbsent refuses settings that require what does not exist here, for a new agent. An agent
// that ran before starts, and reports this with its other problems.
func checkAbsent(c config.Config, once bool) error {
	if len(c.Absent) == 0 || !once && !checkpoint.IsNew(c.Root) {
		return nil
	}
	return &server.SettingsError{Text: Lines(c.Absent)}
}

// Lines returns problems as text, one in each line.
func Lines(all []decode.Problem) string {
	var lines []string
	for _, p := range all {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// Gate returns the rules of when running pods may be changed.
func Gate(c config.Config) rollout.Rules {
	windows, _ := window.Parse(c.UpdateWindow) // the settings were checked
	return rollout.Rules{Windows: windows, LockMax: c.UpdateLockMax}
}

// Shutdown returns the periods in which pods stop before the machine shuts down, and whether its
// shutdown is delayed for them.
func Shutdown(c config.Config) (periods []shutdown.Period, delays bool) {
	for _, p := range c.ShutdownByPriority {
		periods = append(periods, shutdown.Period{Priority: p.Priority, Lasts: time.Duration(p.Seconds) * time.Second})
	}
	if c.ShutdownGrace > 0 {
		periods = shutdown.TwoPeriods(c.ShutdownGrace, c.ShutdownGraceCritical)
	}
	if shutdown.Total(periods) == 0 {
		return shutdown.Default(), false
	}
	return periods, true
}
