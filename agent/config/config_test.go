package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// reserved returns amounts by name.
func reserved(pairs ...string) v1.ResourceList {
	out := v1.ResourceList{}
	for k := 0; k < len(pairs); k += 2 {
		out[v1.ResourceName(pairs[k])] = resource.MustParse(pairs[k+1])
	}
	return out
}

// readText reads a file of settings with that text, from folder dir, on top of
// c. What is wrong is one line for each problem, "~" before warnings.
func readText(t *testing.T, dir, text string, c Config) (Config, string) {
	t.Helper()
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, warnings, err := ReadFile(path, c)
	var all []string
	if err != nil {
		all = strings.Split(err.Error(), "\n")
	}
	for _, w := range warnings {
		all = append(all, "~"+w.Error())
	}
	return got, strings.ReplaceAll(strings.Join(all, "|"), path, "F")
}

func TestReadFile(t *testing.T) {
	base := Default()
	for _, row := range []struct {
		name, text string
		want       func(*Config)
	}{
		{"nothing", "# nothing\n", func(*Config) {}},
		{"who may ask", "tlsCertFile: c\ntlsPrivateKeyFile: /k\ntlsMinVersion: VersionTLS13\ntlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n" +
			"authentication: {x509: {clientCAFile: /ca}}\ntokenFile: /t\nlogLevel: warn\n", func(c *Config) {
			c.TLSCert, c.TLSKey, c.TLSMinVersion, c.TLSCiphers, c.ClientCA, c.Tokens = "DIR/c", "/k", "VersionTLS13", []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, "/ca", "/t"
			c.LogLevel = "warn"
		}},
		{"what it is", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", func(*Config) {}},
		{"paths", "staticPodPath: /m\nroot: /r\npodLogsDir: /l\nsocket: /s\n", func(c *Config) { c.Manifests, c.Root, c.PodLogs, c.Socket = Folders{"/m"}, "/r", "/l", "/s" }},
		{"paths relative to the file", "staticPodPath: m\nresolvConf: ../resolv.conf\n", func(c *Config) { c.Manifests, c.ResolvConf = Folders{"DIR/m"}, "UP/resolv.conf" }},
		{"folders, the lowest first", "staticPodPath: [m, /n]\n", func(c *Config) { c.Manifests = Folders{"DIR/m", "/n"} }},
		{"no folder", "staticPodPath: ''\n", func(*Config) {}},
		{"addresses of both families", "nodeIP: 2001:db8::7,192.0.2.7", func(c *Config) { c.NodeIP = "2001:db8::7,192.0.2.7" }},
		{"health on a port of its own", "healthzPort: 10248\nhealthzBindAddress: ::1", func(c *Config) { c.HealthzPort, c.HealthzAddress = 10248, "::1" }},
		{"no endpoint", `listen: ""`, func(c *Config) { c.Listen = "" }},
		{"a runtime", "containerRuntimeEndpoint: unix:///r.sock", func(c *Config) { c.Endpoint = "unix:///r.sock" }},
		{"a node", "nodeName: edge7\nnodeLabels: {disk: ssd}\n", func(c *Config) { c.NodeName, c.NodeLabels = "edge7", map[string]string{"disk": "ssd"} }},
		{"names without suffix", "podNameSuffix: false", func(c *Config) { c.PodNameSuffix = false }},
		{"field validation", "fieldValidation: Warn", func(c *Config) { c.Validation = "Warn" }},
		{"runtime classes", "runtimeClasses: {gvisor: runsc, plain: ''}", func(c *Config) { c.RuntimeClasses = map[string]string{"gvisor": "runsc", "plain": ""} }},
		{"no resolv.conf", `resolvConf: ""`, func(c *Config) { c.ResolvConf = "" }},
		{"cluster DNS", "clusterDNS: [10.96.0.10, '::1']\nclusterDomain: Cluster_1.local.\n", func(c *Config) {
			c.ClusterDNS, c.ClusterDomain = []string{"10.96.0.10", "::1"}, "Cluster_1.local."
		}},
		{"a driver is for runtimes that do not say", "cgroupDriver: systemd", func(c *Config) { c.CgroupDriver, c.FallbackDriver = "auto", "systemd" }},
		{"no cgroups", "cgroupDriver: none", func(c *Config) { c.CgroupDriver, c.CgroupsPerQOS = "none", false }},
		{"no cgroups, the kubelet's way", "cgroupDriver: systemd\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\n", func(c *Config) {
			c.CgroupDriver, c.FallbackDriver, c.CgroupsPerQOS, c.Enforce = "none", "systemd", false, []string{}
		}},
		{"a cgroup root", "cgroupRoot: /ci\ncgroupsPerQOS: true\n", func(c *Config) { c.CgroupRoot = "/ci" }},
		{"reservations", "systemReserved: {cpu: 500m, pid: '100'}\nkubeReserved: {memory: 1Gi}\n", func(c *Config) {
			c.SystemReserved, c.KubeReserved = reserved("cpu", "500m", "pid", "100"), reserved("memory", "1Gi")
		}},
		{"not enforced", "enforceNodeAllocatable: [none]", func(c *Config) { c.Enforce = []string{"none"} }},
		{"enforced", "enforceNodeAllocatable: [pods]", func(*Config) {}},
		{"enforced outside of pods", "enforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]\nsystemReserved: {memory: 1Gi}\nkubeReserved: {cpu: 100m}\nsystemReservedCgroup: /system.slice\nkubeReservedCgroup: runtime.slice\n", func(c *Config) {
			c.Enforce = []string{"pods", "system-reserved", "kube-reserved-compressible"}
			c.SystemReserved, c.KubeReserved = reserved("memory", "1Gi"), reserved("cpu", "100m")
			c.SystemReservedCgroup, c.KubeReservedCgroup = "/system.slice", "runtime.slice"
		}},
		{"thresholds", "evictionHard: {memory.available: 100Mi, nodefs.available: 10%}", func(c *Config) {
			c.EvictionHard = map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"}
		}},
		{"thresholds that are none", "evictionHard: {memory.available: 0%, nodefs.available: 100%}", func(c *Config) {
			c.EvictionHard = map[string]string{"memory.available": "0%", "nodefs.available": "100%"}
		}},
		{"a threshold that is only reported", "evictionHard: {imagefs.inodesFree: 2%}", func(c *Config) {
			c.EvictionHard = map[string]string{"imagefs.inodesFree": "2%"}
		}},
		{"amounts", "maxPods: 20\npodsPerCore: 5\npodPidsLimit: 64\n", func(c *Config) { c.MaxPods, c.PodsPerCore, c.PodPids = 20, 5, 64 }},
		{"no limit of pids", "podPidsLimit: -1", func(*Config) {}},
		{"cpu limits", "cpuCFSQuota: false\ncpuCFSQuotaPeriod: 5ms\nsingleProcessOOMKill: true\nfailSwapOn: true\n", func(c *Config) {
			c.CFSQuota, c.CFSPeriod, c.SingleProcessOOMKill, c.FailSwapOn = false, 5*time.Millisecond, true, true
		}},
		{"cpus of their own", "cpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: 'true', strict-cpu-reservation: 'false'}\ncpuManagerReconcilePeriod: 3s\nreservedSystemCPUs: 0-1,8\n", func(c *Config) {
			c.CPUPolicy, c.CPUEvery, c.ReservedCPUs = "static", 3*time.Second, "0-1,8"
			c.CPUOptions = map[string]string{"full-pcpus-only": "true", "strict-cpu-reservation": "false"}
		}},
		{"devices", "devices: {example.com/serial: {paths: [/dev/ttyUSB*], permissions: r, count: 2}, example.com/gpu: {cdi: [example.com/gpu=0], shared: true}}", func(c *Config) {
			c.Devices = map[string]Device{"example.com/serial": {Paths: []string{"/dev/ttyUSB*"}, Permissions: "r", Count: 2}, "example.com/gpu": {CDI: []string{"example.com/gpu=0"}, Shared: true}}
		}},
		{"security", "seccompDefault: true\nallowedUnsafeSysctls: [net.core.somaxconn, kernel.msg*]\n", func(c *Config) {
			c.SeccompDefault, c.AllowedUnsafeSysctls = true, []string{"net.core.somaxconn", "kernel.msg*"}
		}},
		{"a back-off", "crashLoopBackOff: {firstContainerRestartPeriod: 1s, maxContainerRestartPeriod: 1m}", func(c *Config) { c.BackOffFirst, c.BackOffMax = time.Second, time.Minute }},
		{"logs", "containerLogMaxSize: 1Ki\ncontainerLogMaxFiles: 3\ncontainerLogMaxWorkers: 2\ncontainerLogMonitorInterval: 5s\ndeadContainersPerContainer: 4\n", func(c *Config) {
			c.LogMaxSize, c.LogMaxFiles, c.LogMaxWorkers, c.LogInterval, c.DeadContainers = resource.MustParse("1024"), 3, 2, 5*time.Second, 4
		}},
		{"one pull at a time", "serializeImagePulls: true", func(c *Config) { c.ImagePulls, c.SerializePulls = 1, true }},
		{"some pulls at a time", "maxParallelImagePulls: 9\nserializeImagePulls: false\n", func(c *Config) { c.ImagePulls = 9 }},
		{"a limit of pulls", "registryPullQPS: 5\nregistryBurst: 2\n", func(c *Config) { c.PullQPS, c.PullBurst = 5, 2 }},
		{"a kubelet's defaults of images", "imageGCHighThresholdPercent: 85\nimageGCLowThresholdPercent: 80\nimageMinimumGCAge: 0s\nimageMaximumGCAge: 0s\n",
			func(*Config) {}},
		{"when images go", "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 1\nimageMinimumGCAge: 1h\nimageMaximumGCAge: 24h\n",
			func(c *Config) {
				c.ImageGCHigh, c.ImageGCLow, c.ImageMinAge, c.ImageMaxAge = 70, 1, time.Hour, 24*time.Hour
			}},
		{"a shutdown in two periods", "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n", func(c *Config) {
			c.ShutdownGrace, c.ShutdownGraceCritical = 30*time.Second, 10*time.Second
		}},
		{"a shutdown by priority", "shutdownGracePeriod: 0s\nshutdownGracePeriodByPodPriority:\n- {priority: -5, shutdownGracePeriodSeconds: 20}\n- priority: 1000\n", func(c *Config) {
			c.ShutdownByPriority = []ShutdownPriority{{-5, 20}, {1000, 0}}
		}},
		{"images never go", "imageGCHighThresholdPercent: 100", func(c *Config) { c.ImageGCHigh = 100 }},
		{"all pulls at a time", "serializeImagePulls: false", func(c *Config) { c.ImagePulls = AllPulls }},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			want := base
			row.want(&want)
			for k, folder := range want.Manifests {
				want.Manifests[k] = strings.Replace(folder, "DIR", dir, 1)
			}
			want.TLSCert = strings.Replace(want.TLSCert, "DIR", dir, 1)
			want.ResolvConf = strings.Replace(want.ResolvConf, "UP", filepath.Dir(dir), 1)
			got, wrong := readText(t, dir, row.text, base)
			if wrong != "" || !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("%s\ngot  %+v\nwant %+v", wrong, got, want)
			}
		})
	}
}

func TestReadFileProblems(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a slip of the pen", "maxPods: 3\nmaxPod: 4\n", `F:2:1: unknown field: did you mean "maxPods"?`},
		{"a slip inside", "crashLoopBackOff:\n  maxContainerRestartPerid: 1s\n", `F:2:3: crashLoopBackOff: unknown field: did you mean "maxContainerRestartPeriod"?`},
		{"two addresses of a family", "nodeIP: 192.0.2.7,192.0.2.8\n", `F:1:9: nodeIP: more than one address of a family: write one of IPv4, one of IPv6, or both`},
		{"an address of the loopback", "nodeIP: 127.0.0.1\n", `F:1:9: nodeIP: 127.0.0.1 is no address at which others reach this machine`},
		{"an address and space", "nodeIP: 192.0.2.7, 2001:db8::7\n", `F:1:9: nodeIP: " 2001:db8::7" is no IP address: write one, or one of each family with a comma between`},
		{"health for others", "healthzPort: 65536\nhealthzBindAddress: here\n", `F:1:14: healthzPort: must be from 0 to 65535|F:2:21: healthzBindAddress: no IP address`},
		{"all at once", "maxPods: many\nlisten: here\nroot: 3\n", `F:1:10: maxPods: expected a number (int64), got a string|F:2:9: listen: not of the form host:port|F:3:7: root: expected a string, got a number: put it in quotes`},
		{"no YAML", "a: [\n", "F:1:1: not valid YAML: did not find expected node content"},
		{"another kind", "kind: Pod\napiVersion: v1\n", `F:1:7: kind: settings are of kind KubeletConfiguration, or do not say|F:2:13: apiVersion: settings are of kubelet.config.k8s.io/v1beta1, or do not say`},
		{"a level of the log", "logLevel: trace", `F:1:11: logLevel: choose debug, info, warn or error`},
		{"a version of TLS", "tlsMinVersion: VersionTLS10", `F:1:16: tlsMinVersion: choose VersionTLS12 or VersionTLS13`},
		{"a weak cipher", "tlsCipherSuites: [TLS_AES_128_GCM_SHA256, TLS_RSA_WITH_RC4_128_SHA]", `F:1:43: tlsCipherSuites[1]: none of the ciphers that are safe, such as`},
		{"a slip far inside", "authentication: {x509: {clientCA: x}}", `F:1:25: authentication.x509: unknown field`},
		{"what only a kubelet heeds", "syncFrequency: 1m\nauthentication: {anonymous: {enabled: false}}\naddress: 0.0.0.0\nmaxPods: 3\n",
			"~F:3:10: address: has no effect here: see listen; nor have syncFrequency"},
		{"a URL", "staticPodURL: ftp://me:secret@h/x", "F:1:15: staticPodURL: not of the form http://HOST/PATH or https://HOST/PATH"},
		{"a header's name", "staticPodURLHeader: {a b: [x]}", "F:1:22: staticPodURLHeader: is not the name of a header"},
		{"a header of two lines", "staticPodURLHeader: {A: [\"secret\\nB: x\"]}", "F:1:22: staticPodURLHeader: has a control character"},
		{"a header of objects", "staticPodURLHeader: {A: {secret: 1}}", "F:1:22: staticPodURLHeader: expected a list, got an object"},
		{"a URL asked all the time", "httpCheckFrequency: 1ms", "F:1:21: httpCheckFrequency: must be between 1s and 24h0m0s"},
		{"a node's name", "nodeName: a_b", `F:1:11: nodeName: a lowercase RFC 1123 subdomain must consist`},
		{"a label", "nodeLabels:\n  a: x\n  b c: x\n", "F:3:8: nodeLabels: name part must consist"},
		{"a class", "runtimeClasses: {A: x}", `F:1:21: runtimeClasses: a lowercase`},
		{"field validation", "fieldValidation: strict", `F:1:18: fieldValidation: choose Strict, Warn or Ignore`},
		{"a runtime", "containerRuntimeEndpoint: tcp://x:1", `F:1:27: containerRuntimeEndpoint: want unix:///path/to/socket`},
		{"a domain with a blank", "clusterDomain: cluster.local nameserver\n", `F:1:16: clusterDomain: no domain such as cluster.local`},
		{"a domain with a line", "clusterDomain: \"a\\nnameserver 192.0.2.1\"\n", `F:1:16: clusterDomain: no domain such as cluster.local`},
		{"a name server", "clusterDNS: [10.0.0.1, dns]", `F:1:24: clusterDNS[1]: no IP address`},
		{"a driver", "cgroupDriver: Systemd", `F:1:15: cgroupDriver: choose auto, cgroupfs, systemd or none`},
		{"cgroups and none", "cgroupDriver: none\ncgroupsPerQOS: true\n", "F:2:16: cgroupsPerQOS: true contradicts cgroupDriver: none"},
		{"a reservation of something else", "systemReserved: {memory: 1Gi, gpu: 1}", "F:1:36: systemReserved: only cpu, memory, ephemeral-storage and pid can be reserved"},
		{"a reservation below nothing", "kubeReserved: {cpu: -1}", "F:1:21: kubeReserved: must not be negative"},
		{"a reservation that is no quantity", "kubeReserved: {cpu: lots}", `F:1:21: kubeReserved: expected a quantity such as 500m, 2 or 1Gi, got a string`},
		{"levels to enforce", "enforceNodeAllocatable: [pods, all]", "F:1:32: enforceNodeAllocatable[1]: choose pods, system-reserved, kube-reserved, one of the latter two with -compressible, or none"},
		{"a level without its cgroup", "enforceNodeAllocatable: [pods, system-reserved]\nsystemReserved: {cpu: 1}\n", "F:1:32: enforceNodeAllocatable[1]: system-reserved needs systemReservedCgroup, the cgroup whose processes are held to systemReserved"},
		{"pods by the cpu alone", "enforceNodeAllocatable: [pods-compressible]", "F:1:26: enforceNodeAllocatable[0]: choose pods, system-reserved"},
		{"an amount of nothing", "enforceNodeAllocatable: [kube-reserved]\nkubeReservedCgroup: /k\nkubeReserved: {ephemeral-storage: 1Gi}\n", "F:1:26: enforceNodeAllocatable[0]: kube-reserved needs an amount of cpu, memory or pid in kubeReserved"},
		{"the cpu of none", "enforceNodeAllocatable: [kube-reserved-compressible]\nkubeReservedCgroup: /k\nkubeReserved: {memory: 1Gi}\n", "F:1:26: enforceNodeAllocatable[0]: needs an amount of cpu in kubeReserved"},
		{"a level twice", "enforceNodeAllocatable: [system-reserved, system-reserved-compressible]\nsystemReservedCgroup: /s\nsystemReserved: {cpu: 1}\n", "F:1:43: enforceNodeAllocatable[1]: contradicts system-reserved: remove one of them"},
		{"an amount beside listed cpus", "enforceNodeAllocatable: [system-reserved]\nsystemReservedCgroup: /s\nsystemReserved: {memory: 1Gi}\nreservedSystemCPUs: 0-1\n", "F:1:26: enforceNodeAllocatable[0]: contradicts reservedSystemCPUs"},
		{"limits without cgroups", "enforceNodeAllocatable: [system-reserved]\nsystemReservedCgroup: /s\nsystemReserved: {memory: 1Gi}\ncgroupDriver: none\n", "F:1:26: enforceNodeAllocatable[0]: system-reserved needs cgroups"},
		{"none beside another", "enforceNodeAllocatable: [pods, none]", "F:1:32: enforceNodeAllocatable[1]: none stands alone"},
		{"a signal that only evicts", "evictionHard: {containerfs.available: 15%}", "~F:1:39: evictionHard: has no effect here"},
		{"no signal", "evictionHard: {memory: 1Gi}", `F:1:24: evictionHard: there is no such signal: choose`},
		{"a threshold of too much", "evictionHard: {memory.available: 101%}", `F:1:34: evictionHard: must be between 0% and 100%`},
		{"a threshold of nothing", "evictionHard: {memory.available: '0'}", `F:1:34: evictionHard: must be a quantity above 0`},
		{"no pods", "maxPods: -1\npodsPerCore: -1", "F:1:10: maxPods: must not be negative|F:2:14: podsPerCore: must not be negative"},
		{"a period", "cpuCFSQuotaPeriod: 2s", "F:1:20: cpuCFSQuotaPeriod: must be between 1ms and 1s"},
		{"a policy of cpus", "cpuManagerPolicy: dynamic", "F:1:19: cpuManagerPolicy: choose none or static"},
		{"an option of cpus that is none", "cpuManagerPolicyOptions: {full-cores: 'true'}", "F:1:39: cpuManagerPolicyOptions: no option of the static policy"},
		{"an option of cpus behind a feature gate", "cpuManagerPolicyOptions: {align-by-socket: 'true'}", "F:1:44: cpuManagerPolicyOptions: no option of the static policy"},
		{"an option of cpus that says nothing", "cpuManagerPolicyOptions: {full-pcpus-only: 'maybe'}", "F:1:44: cpuManagerPolicyOptions: want \"true\" or \"false\""},
		{"cpus checked too often", "cpuManagerReconcilePeriod: 999ms", "F:1:28: cpuManagerReconcilePeriod: must be between 1s and 1h0m0s"},
		{"cpus checked too rarely", "cpuManagerReconcilePeriod: 61m", "F:1:28: cpuManagerReconcilePeriod: must be between 1s and 1h0m0s"},
		{"reserved cpus", "reservedSystemCPUs: 3-1", "F:1:21: reservedSystemCPUs: no list of cpus such as 0-1,8"},
		{"a resource of no domain", "devices: {serial: {paths: [/dev/x]}}", "F:1:11: devices: no name of a resource for devices, such as example.com/serial"},
		{"a resource of Kubernetes", "devices: {kubernetes.io/serial: {paths: [/dev/x]}}", "F:1:11: devices: no name of a resource for devices"},
		{"no device", "devices: {example.com/x: {permissions: r}}", "F:1:11: devices: names no device: give paths such as /dev/ttyUSB*, or names in cdi"},
		{"permissions that are none", "devices: {example.com/x: {paths: [/dev/x], permissions: rwx}}", "F:1:11: devices: permissions must be of the letters r, w and m"},
		{"a path that leads nowhere", "devices: {example.com/x: {paths: [ttyUSB0]}}", "F:1:11: devices: paths must be absolute paths, or patterns of such: /dev/ttyUSB*"},
		{"a pattern that is none", "devices: {example.com/x: {paths: ['/dev/tty[']}}", "F:1:11: devices: paths must be absolute paths"},
		{"a CDI name that is none", "devices: {example.com/x: {cdi: [gpu]}}", "F:1:11: devices: a name in cdi must be the full name of a CDI device, such as example.com/gpu=0"},
		{"a count below nothing", "devices: {example.com/x: {paths: [/dev/x], count: -1}}", "F:1:11: devices: count must not be negative"},
		{"a count of what is shared", "devices: {example.com/x: {paths: [/dev/x], count: 2, shared: true}}", "F:1:11: devices: count contradicts shared: true"},
		{"a slip in a device", "devices: {example.com/x: {path: [/dev/x]}}", `F:1:27: devices: unknown field: did you mean "paths"?`},
		{"a sysctl", "allowedUnsafeSysctls:\n- vm.swappiness\n", `F:2:3: allowedUnsafeSysctls[0]: the whole machine's`},
		{"a limit below nothing", "registryPullQPS: -1\nregistryBurst: -2\n", "F:1:18: registryPullQPS: must not be negative|F:2:16: registryBurst: must not be negative"},
		{"thresholds of images that cannot be", "imageGCHighThresholdPercent: 101\nimageGCLowThresholdPercent: 0\n", "F:1:30: imageGCHighThresholdPercent: must be from 1 to 100|F:2:29: imageGCLowThresholdPercent: must be from 1 to 100"},
		{"a high threshold of images below the low one", "imageGCHighThresholdPercent: 80", "F:1:30: imageGCHighThresholdPercent: must be more than imageGCLowThresholdPercent, which"},
		{"a low threshold of images above the high one", "imageGCLowThresholdPercent: 90", "F:1:29: imageGCLowThresholdPercent: must be less than imageGCHighThresholdPercent, which"},
		{"ages of images that cannot be", "imageMinimumGCAge: -1s", "F:1:20: imageMinimumGCAge: must be between 0s and 876000h0m0s"},
		{"images that must go before they may", "imageMaximumGCAge: 1m", "F:1:20: imageMaximumGCAge: must be more than imageMinimumGCAge, which"},
		{"a maximum", "crashLoopBackOff: {maxContainerRestartPeriod: 10m}", "F:1:47: crashLoopBackOff.maxContainerRestartPeriod: must be between 1s and 5m0s"},
		{"a first above it", "crashLoopBackOff:\n  firstContainerRestartPeriod: 30s\n  maxContainerRestartPeriod: 20s\n", "F:2:32: crashLoopBackOff.firstContainerRestartPeriod: must not be more than maxContainerRestartPeriod"},
		{"logs", "containerLogMaxSize: 0\ncontainerLogMaxFiles: 1\ncontainerLogMaxWorkers: 0\ncontainerLogMonitorInterval: 1ms\ndeadContainersPerContainer: 0\n",
			"F:1:22: containerLogMaxSize: must not be zero; a negative size means no rotation|F:2:23: containerLogMaxFiles: must be at least 2|" +
				"F:3:25: containerLogMaxWorkers: must be at least 1|F:4:30: containerLogMonitorInterval: must be between 1s and 1h0m0s|" +
				"F:5:29: deadContainersPerContainer: must be at least 1"},
		{"a short shutdown", "shutdownGracePeriod: 500ms", "F:1:22: shutdownGracePeriod: must be between 1s and 24h0m0s"},
		{"critical pods beyond the shutdown", "shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 20s", "F:2:34: shutdownGracePeriodCriticalPods: must not be more than shutdownGracePeriod, of which it is a part"},
		{"a shutdown in two ways", "shutdownGracePeriod: 10s\nshutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 5}]", "F:1:22: shutdownGracePeriod: contradicts shutdownGracePeriodByPodPriority: give one of them"},
		{"a shutdown of one priority twice", "shutdownGracePeriodByPodPriority: [{priority: 1}, {priority: 1}]", "F:1:51: shutdownGracePeriodByPodPriority[1]: this priority is there twice"},
		{"a shutdown of less than no time", "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: -1}]", "F:1:36: shutdownGracePeriodByPodPriority[0]: shutdownGracePeriodSeconds must be from 0 to 86400"},
		{"a slip in the periods of a shutdown", "shutdownGracePeriodByPodPriority: [{prio: 1}]", `F:1:37: shutdownGracePeriodByPodPriority[0]: unknown field`},
		{"pulls", "maxParallelImagePulls: 0", "F:1:24: maxParallelImagePulls: must be at least 1"},
		{"pulls that contradict each other", "maxParallelImagePulls: 2\nserializeImagePulls: true\n", "F:1:24: maxParallelImagePulls: more than one contradicts serializeImagePulls: true"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, got := readText(t, t.TempDir(), row.text, Default())
			want := strings.Split(row.want, "|")
			problems := strings.Split(got, "|")
			same := len(problems) == len(want)
			for k := 0; same && k < len(want); k++ {
				same = strings.HasPrefix(problems[k], want[k])
			}
			if strings.Contains(got, "secret") || strings.Contains(got, "90817263") {
				t.Errorf("it tells a secret: %s", got)
			}
			if !same {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// otherValues are another value than its default for each field.
func otherValues() map[string]string {
	return map[string]string{
		"tlsCertFile": "/c", "tlsPrivateKeyFile": "/k", "tlsCipherSuites": "[TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]", "tlsMinVersion": "VersionTLS13",
		"authentication.x509.clientCAFile": "/ca", "tokenFile": "/t", "logLevel": "debug",
		"staticPodURL": "http://h/x", "staticPodURLHeader": "{A: [" + hidden + "]}", "httpCheckFrequency": "9s", "removalSettle": "1m", "manifestURLCAFile": "/ca",
		"manifestURLCertFile": "/c", "manifestURLPrivateKeyFile": "/k", "manifestURLTokenFile": "/t",
		"manifestURLPublicKey": "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
		"staticPodPath":        "/m", "nodeName": "other", "podNameSuffix": "false", "nodeLabels": "{a: b}", "fieldValidation": "Ignore",
		"containerRuntimeEndpoint": "/r", "managedRuntime": "true", "runtimeClasses": "{a: b}", "root": "/r", "podLogsDir": "/l", "listen": "127.0.0.1:1", "nodeIP": "192.0.2.7", "healthzPort": "10248", "podResources": "true", "healthzBindAddress": "127.0.0.2",
		"socket": "/s", "resolvConf": "/r", "clusterDNS": "[10.0.0.1]", "clusterDomain": "c", "cgroupDriver": "systemd", "cgroupRoot": "/c",
		"cgroupsPerQOS": "false", "enforceNodeAllocatable": "[]", "systemReserved": "{cpu: 1m}", "kubeReserved": "{cpu: 1m}", "systemReservedCgroup": "/system.slice", "kubeReservedCgroup": "/system.slice",
		"evictionHard": "{memory.available: 1Mi}", "maxPods": "9", "podsPerCore": "9", "podPidsLimit": "9", "cpuCFSQuota": "false",
		"cpuCFSQuotaPeriod": "1ms", "cpuManagerPolicy": "static", "cpuManagerPolicyOptions": "{full-pcpus-only: 'true'}", "cpuManagerReconcilePeriod": "5s", "reservedSystemCPUs": "0-1", "devices": "{example.com/serial: {paths: [/dev/ttyUSB*]}}", "singleProcessOOMKill": "true", "failSwapOn": "true", "seccompDefault": "true", "keepTerminatedPodVolumes": "true", "podHosts": "true", "followResolvConf": "true", "allowInsecureManifests": "true",
		"imageDir": "/i,/j", "updateStrategy": "StopFirst", "updatePolicy": "Replace", "updateHealth": "30s", "followImages": "1h", "updateStable": "20s", "updateWindow": "Sun 02:00-04:00", "updateLockMax": "30m",
		"allowedUnsafeSysctls": "[net.*]", "crashLoopBackOff.firstContainerRestartPeriod": "1s", "crashLoopBackOff.maxContainerRestartPeriod": "1m",
		"serializeImagePulls": "true", "maxParallelImagePulls": "9", "registryPullQPS": "9", "registryBurst": "9",
		"imageGCHighThresholdPercent": "90", "imageGCLowThresholdPercent": "70", "imageMinimumGCAge": "1m", "imageMaximumGCAge": "1h",
		"containerLogMaxSize": "-1", "containerLogMaxFiles": "9", "containerLogMonitorInterval": "9s", "containerLogMaxWorkers": "9", "deadContainersPerContainer": "9",
		"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "20s", "shutdownGracePeriodByPodPriority": "[{priority: 1, shutdownGracePeriodSeconds: 5}]",
	}
}

// asFile says one field, whose name may lead into objects.
func asFile(name, value string) string {
	path := strings.Split(name, ".")
	text := path[len(path)-1] + ": " + value
	for k := len(path) - 2; k >= 0; k-- {
		text = fmt.Sprintf("%s: {%s}", path[k], text)
	}
	return text
}

// fileRows are the rows of the table that a file can have.
func fileRows() []row {
	c := Default()
	return slices.DeleteFunc(rows(&c), func(r row) bool { return r.name == "" })
}

// Each setting is documented once, and another value than its default changes
// the settings.
func TestEverySettingIsDocumentedAndCounts(t *testing.T) {
	other := otherValues()
	seen := map[string]bool{}
	for _, row := range fileRows() {
		if row.about == "" || seen[row.name] {
			t.Errorf("%s: nothing is said about it, or it is there twice", row.name)
		}
		seen[row.name] = true
		text := asFile(row.name, other[row.name])
		base := Default()
		base.ShutdownGrace = time.Hour // of which another is a part
		got, wrong := readText(t, t.TempDir(), text, base)
		if wrong != "" || equality.Semantic.DeepEqual(got, base) {
			t.Errorf("%s: changes nothing %s", text, wrong)
		}
		if now, later := Changed(base, got); !slices.Contains(slices.Concat(now, later), row.name) {
			t.Errorf("%s: changed %s and %s", row.name, now, later)
		}
	}
	if len(seen) != len(other) {
		t.Errorf("%d settings, values of %d", len(seen), len(other))
	}
}

// Each field of Config has a row, so that Default leaves none out.
func TestEveryFieldOfConfigHasARow(t *testing.T) {
	var c Config
	rowOf := map[uintptr]bool{}
	for _, r := range rows(&c) {
		rowOf[reflect.ValueOf(r.cell).Elem().FieldByName("to").Pointer()] = true
	}
	v := reflect.ValueOf(&c).Elem()
	for k := range v.NumField() {
		name := v.Type().Field(k).Name
		if name != "FallbackDriver" && name != "Absent" && !rowOf[v.Field(k).Addr().Pointer()] { // these follow from others
			t.Errorf("%s has no row", name)
		}
	}
}

// A file of defaults is as good as none.
func TestDefaultsRoundTrip(t *testing.T) {
	var b strings.Builder
	if err := PrintDefaults(&b); err != nil {
		t.Fatal(err)
	}
	got, wrong := readText(t, t.TempDir(), b.String(), Default())
	if wrong != "" {
		t.Fatal(wrong)
	}
	if now, later := Changed(Default(), got); len(now)+len(later) > 0 {
		t.Errorf("got  %+v\nwant %+v", got, Default())
	}
}

// No field is listed twice, and what is to be seen instead is there.
func TestNoFieldIsBothUsedAndUnused(t *testing.T) {
	used := map[string]bool{}
	for _, row := range fileRows() {
		used[row.name] = true
	}
	all := unusedFields()
	if len(all)+len(absentFields()) < 73 {
		t.Errorf("only %d of a kubelet's fields are accepted besides", len(all))
	}
	for _, u := range all {
		if used[u.name] && u.name != u.instead || u.reason == "" || u.instead != "" && !used[u.instead] {
			t.Errorf("%s, instead %q", u.name, u.instead)
		}
		used[u.name] = true
	}
}

// A kubelet's file, as a cluster's tools write it: nothing in it is an error.
func TestAKubeletsFileCanBeDroppedIn(t *testing.T) {
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" +
		"authentication:\n  anonymous: {enabled: false}\n  webhook: {cacheTTL: 0s, enabled: true}\n  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}\n" +
		"authorization: {mode: Webhook}\ncgroupDriver: systemd\nclusterDNS:\n- 10.96.0.10\nclusterDomain: cluster.local\n" +
		"containerRuntimeEndpoint: \"\"\ncpuManagerReconcilePeriod: 0s\nhttpCheckFrequency: 0s\nimageMinimumGCAge: 0s\ncrashLoopBackOff: {}\nmaxPods: 0\nfailCgroupV1: false\n" +
		"healthzPort: 10248\nhealthzBindAddress: 0.0.0.0\nlogging: {flushFrequency: 0, options: {json: {infoBufferSize: \"0\"}}, verbosity: 0}\nmemorySwap: {}\n" +
		"evictionHard: {memory.available: 100Mi, imagefs.inodesFree: 5%}\nrotateCertificates: true\nstaticPodPath: /etc/kubernetes/manifests\n"
	c, got := readText(t, t.TempDir(), text, Default())
	want := "~F:20:21: healthzBindAddress: is no address of the loopback: healthzPort is served on 127.0.0.1, and listen is for others|" +
		"~F:24:21: rotateCertificates: has no effect here; nor have authentication.webhook, authorization"
	if got != want {
		t.Errorf("warned of\n%s\nwant\n%s", got, want)
	}
	if !slices.Equal(c.Manifests, []string{"/etc/kubernetes/manifests"}) || c.FallbackDriver != "systemd" || c.MaxPods != 110 || c.HealthzPort != 10248 || c.HealthzAddress != "127.0.0.1" {
		t.Errorf("%+v", c)
	}
}

func TestReadFileThatIsNotThere(t *testing.T) {
	_, _, err := ReadFile("/nowhere/c.yaml", Config{})
	if want := "read settings: open /nowhere/c.yaml: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
