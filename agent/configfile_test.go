package agent

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/agent/image"
	"monopod/agent/logs"
	"monopod/manifests"
)

// readText reads a file of settings with that text, from folder dir, on top of
// c. What is wrong is one line for each problem, "~" before warnings.
func readText(t *testing.T, dir, text string, c Config) (Config, string) {
	t.Helper()
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, warnings, err := ReadConfig(path, c)
	var all []string
	if err != nil {
		all = strings.Split(err.Error(), "\n")
	}
	for _, w := range warnings {
		all = append(all, "~"+w.Error())
	}
	return got, strings.ReplaceAll(strings.Join(all, "|"), path, "F")
}

func TestReadConfig(t *testing.T) {
	base := Config{Listen: DefaultListen}
	for _, row := range []struct {
		name, text string
		want       func(*Config)
	}{
		{"nothing", "# nothing\n", func(*Config) {}},
		{"what it is", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", func(*Config) {}},
		{"paths", "staticPodPath: /m\nroot: /r\npodLogsDir: /l\nsocket: /s\n", func(c *Config) { c.Manifests, c.Root, c.PodLogs, c.Socket = "/m", "/r", "/l", "/s" }},
		{"paths relative to the file", "staticPodPath: m\nresolvConf: ../resolv.conf\n", func(c *Config) { c.Manifests, c.ResolvConf = "DIR/m", "UP/resolv.conf" }},
		{"no endpoint", `listen: ""`, func(c *Config) { c.Listen = "" }},
		{"a runtime", "containerRuntimeEndpoint: unix:///r.sock", func(c *Config) { c.Endpoint = "unix:///r.sock" }},
		{"a node", "nodeName: edge7\nnodeLabels: {disk: ssd}\n", func(c *Config) { c.NodeName, c.NodeLabels = "edge7", map[string]string{"disk": "ssd"} }},
		{"names without suffix", "podNameSuffix: false", func(c *Config) { c.NoNameSuffix = true }},
		{"field validation", "fieldValidation: Warn", func(c *Config) { c.Validation = "Warn" }},
		{"runtime classes", "runtimeClasses: {gvisor: runsc, plain: ''}", func(c *Config) { c.RuntimeClasses = map[string]string{"gvisor": "runsc", "plain": ""} }},
		{"no resolv.conf", `resolvConf: ""`, func(c *Config) { c.NoResolvConf = true }},
		{"cluster DNS", "clusterDNS: [10.96.0.10, '::1']\nclusterDomain: cluster.local\n", func(c *Config) {
			c.ClusterDNS, c.ClusterDomain = []string{"10.96.0.10", "::1"}, "cluster.local"
		}},
		{"a driver is for runtimes that do not say", "cgroupDriver: systemd", func(c *Config) { c.CgroupDriver, c.FallbackDriver = "auto", "systemd" }},
		{"no cgroups", "cgroupDriver: none", func(c *Config) { c.CgroupDriver = "none" }},
		{"no cgroups, the kubelet's way", "cgroupDriver: systemd\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\n", func(c *Config) {
			c.CgroupDriver, c.FallbackDriver, c.Reserved.Unenforced = "none", "systemd", true
		}},
		{"a cgroup root", "cgroupRoot: /ci\ncgroupsPerQOS: true\n", func(c *Config) { c.CgroupRoot = "/ci" }},
		{"reservations", "systemReserved: {cpu: 500m, pid: '100'}\nkubeReserved: {memory: 1Gi}\n", func(c *Config) {
			c.Reserved.System, c.Reserved.Agent = list("cpu", "500m", "pid", "100"), list("memory", "1Gi")
		}},
		{"not enforced", "enforceNodeAllocatable: [none]", func(c *Config) { c.Reserved.Unenforced = true }},
		{"enforced", "enforceNodeAllocatable: [pods]", func(*Config) {}},
		{"thresholds", "evictionHard: {memory.available: 100Mi, nodefs.available: 10%}", func(c *Config) {
			c.Reserved.Free = map[v1.ResourceName]Threshold{"memory": {Amount: resource.MustParse("100Mi")}, "ephemeral-storage": {Share: 0.1}}
			c.Pressure = map[string]Threshold{"memory.available": {Amount: resource.MustParse("100Mi")}, "nodefs.available": {Share: 0.1}}
		}},
		{"thresholds that are none", "evictionHard: {memory.available: 0%, nodefs.available: 100%}", func(c *Config) { c.Pressure = map[string]Threshold{} }},
		{"a threshold that is only reported", "evictionHard: {imagefs.inodesFree: 2%}", func(c *Config) {
			c.Pressure = map[string]Threshold{"imagefs.inodesFree": {Share: 0.02}}
		}},
		{"amounts", "maxPods: 20\npodsPerCore: 5\npodPidsLimit: 64\n", func(c *Config) { c.MaxPods, c.PodsPerCore, c.PodPids = 20, 5, 64 }},
		{"no limit of pids", "podPidsLimit: -1", func(*Config) {}},
		{"cpu limits", "cpuCFSQuota: false\ncpuCFSQuotaPeriod: 5ms\nsingleProcessOOMKill: true\nfailSwapOn: true\n", func(c *Config) {
			c.NoCFSQuota, c.CFSPeriod, c.SingleProcessOOMKill, c.FailSwapOn = true, 5*time.Millisecond, true, true
		}},
		{"security", "seccompDefault: true\nallowedUnsafeSysctls: [net.core.somaxconn, kernel.msg*]\n", func(c *Config) {
			c.SeccompDefault, c.AllowedUnsafeSysctls = true, []string{"net.core.somaxconn", "kernel.msg*"}
		}},
		{"a back-off", "crashLoopBackOff: {firstContainerRestartPeriod: 1s, maxContainerRestartPeriod: 1m}", func(c *Config) { c.BackOff = BackOff{time.Second, time.Minute} }},
		{"logs", "containerLogMaxSize: 1Ki\ncontainerLogMaxFiles: 3\ncontainerLogMaxWorkers: 2\ncontainerLogMonitorInterval: 5s\ndeadContainersPerContainer: 4\n", func(c *Config) {
			c.Logs, c.DeadContainers = logs.Config{MaxSize: 1024, MaxFiles: 3, Workers: 2, Interval: 5 * time.Second}, 4
		}},
		{"one pull at a time", "serializeImagePulls: true", func(c *Config) { c.ImagePulls = 1 }},
		{"some pulls at a time", "maxParallelImagePulls: 9\nserializeImagePulls: false\n", func(c *Config) { c.ImagePulls = 9 }},
		{"a limit of pulls", "registryPullQPS: 5\nregistryBurst: 2\n", func(c *Config) { c.Images.QPS, c.Images.Burst = 5, 2 }},
		{"a kubelet's defaults of images", "imageGCHighThresholdPercent: 85\nimageGCLowThresholdPercent: 80\nimageMinimumGCAge: 0s\nimageMaximumGCAge: 0s\n",
			func(c *Config) { c.Images.Collect = image.Limits{High: 85, Low: 80} }},
		{"when images go", "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 1\nimageMinimumGCAge: 1h\nimageMaximumGCAge: 24h\n",
			func(c *Config) {
				c.Images.Collect = image.Limits{High: 70, Low: 1, MinAge: time.Hour, MaxAge: 24 * time.Hour}
			}},
		{"images never go", "imageGCHighThresholdPercent: 100", func(c *Config) { c.Images.Collect.High = 100 }},
		{"all pulls at a time", "serializeImagePulls: false", func(c *Config) { c.ImagePulls = math.MaxInt32 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			want := base
			row.want(&want)
			want.Manifests = strings.Replace(want.Manifests, "DIR", dir, 1)
			want.ResolvConf = strings.Replace(want.ResolvConf, "UP", filepath.Dir(dir), 1)
			got, wrong := readText(t, dir, row.text, base)
			if wrong != "" || !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("%s\ngot  %+v\nwant %+v", wrong, got, want)
			}
		})
	}
}

func TestReadConfigProblems(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a slip of the pen", "maxPods: 3\nmaxPod: 4\n", `F:2:1: maxPod: unknown field "maxPod": did you mean "maxPods"?`},
		{"a slip inside", "crashLoopBackOff:\n  maxContainerRestartPerid: 1s\n", `F:2:3: crashLoopBackOff.maxContainerRestartPerid: unknown field "maxContainerRestartPerid": did you mean "maxContainerRestartPeriod"?`},
		{"all at once", "maxPods: many\nlisten: here\nroot: 3\n", `F:1:10: maxPods: expected a number (int64), got a string ("many")|F:2:9: listen: "here" is not of the form host:port|F:3:7: root: expected a string, got a number (3): put it in quotes, "3"`},
		{"no YAML", "a: [\n", "F:1:1: not valid YAML: did not find expected node content"},
		{"another kind", "kind: Pod\napiVersion: v1\n", `F:1:7: kind: "Pod": settings are of kind KubeletConfiguration, or do not say|F:2:13: apiVersion: "v1": settings are of kubelet.config.k8s.io/v1beta1, or do not say`},
		{"what only a kubelet heeds", "syncFrequency: 1m\nauthentication: {anonymous: {enabled: false}, x: [1]}\naddress: 0.0.0.0\nmaxPods: 3\n",
			"~F:1:16: syncFrequency: has no effect here|~F:2:1: authentication: has no effect here|~F:3:10: address: has no effect here: see listen"},
		{"a node's name", "nodeName: a_b", `F:1:11: nodeName: "a_b": a lowercase RFC 1123 subdomain must consist`},
		{"a label", "nodeLabels:\n  a: x\n  b c: x\n", "F:3:8: nodeLabels[b c]: b c=x: name part must consist"},
		{"a class", "runtimeClasses: {A: x}", `F:1:21: runtimeClasses[A]: the class "A": a lowercase`},
		{"field validation", "fieldValidation: strict", `F:1:18: fieldValidation: "strict": choose Strict, Warn or Ignore`},
		{"a runtime", "containerRuntimeEndpoint: tcp://x:1", `F:1:27: containerRuntimeEndpoint: "tcp://x:1": want unix:///path/to/socket`},
		{"a name server", "clusterDNS: [10.0.0.1, dns]", `F:1:24: clusterDNS[1]: "dns" is no IP address`},
		{"a driver", "cgroupDriver: Systemd", `F:1:15: cgroupDriver: "Systemd": choose auto, cgroupfs, systemd, none`},
		{"cgroups and none", "cgroupDriver: none\ncgroupsPerQOS: true\n", "F:2:16: cgroupsPerQOS: true contradicts cgroupDriver: none"},
		{"a reservation of something else", "systemReserved: {memory: 1Gi, gpu: 1}", "F:1:36: systemReserved[gpu]: only cpu, memory, ephemeral-storage and pid can be reserved"},
		{"a reservation below nothing", "kubeReserved: {cpu: -1}", "F:1:21: kubeReserved[cpu]: -1: must not be negative"},
		{"a reservation that is no quantity", "kubeReserved: {cpu: lots}", `F:1:21: kubeReserved[cpu]: expected a quantity such as 500m, 2 or 1Gi, got a string ("lots")`},
		{"levels to enforce", "enforceNodeAllocatable: [pods, system-reserved, all]", `F:1:49: enforceNodeAllocatable[2]: "all": choose pods or none|~F:1:32: enforceNodeAllocatable[1]: system-reserved has no effect here`},
		{"none beside another", "enforceNodeAllocatable: [pods, none]", "F:1:32: enforceNodeAllocatable[1]: none stands alone"},
		{"a signal that only evicts", "evictionHard: {containerfs.available: 15%}", "~F:1:39: evictionHard[containerfs.available]: has no effect here"},
		{"no signal", "evictionHard: {memory: 1Gi}", `F:1:24: evictionHard[memory]: there is no signal "memory": choose`},
		{"a threshold of too much", "evictionHard: {memory.available: 101%}", `F:1:34: evictionHard[memory.available]: "101%": must be between 0% and 100%`},
		{"a threshold of nothing", "evictionHard: {memory.available: '0'}", `F:1:34: evictionHard[memory.available]: "0": must be a quantity above 0`},
		{"no pods", "maxPods: -1\npodsPerCore: -1", "F:1:10: maxPods: -1: must not be negative|F:2:14: podsPerCore: -1: must not be negative"},
		{"a period", "cpuCFSQuotaPeriod: 2s", "F:1:20: cpuCFSQuotaPeriod: 2s: must be between 1ms and 1s"},
		{"a sysctl", "allowedUnsafeSysctls:\n- vm.swappiness\n", `F:2:3: allowedUnsafeSysctls[0]: "vm.swappiness" is the whole machine's`},
		{"a limit below nothing", "registryPullQPS: -1\nregistryBurst: -2\n", "F:1:18: registryPullQPS: -1: must not be negative|F:2:16: registryBurst: -2: must not be negative"},
		{"thresholds of images that cannot be", "imageGCHighThresholdPercent: 101\nimageGCLowThresholdPercent: 0\n", "F:1:30: imageGCHighThresholdPercent: 101: must be from 1 to 100|F:2:29: imageGCLowThresholdPercent: 0: must be from 1 to 100"},
		{"a high threshold of images below the low one", "imageGCHighThresholdPercent: 80", "F:1:30: imageGCHighThresholdPercent: 80: must be more than imageGCLowThresholdPercent, 80"},
		{"a low threshold of images above the high one", "imageGCLowThresholdPercent: 90", "F:1:29: imageGCLowThresholdPercent: 90: must be less than imageGCHighThresholdPercent, 85"},
		{"ages of images that cannot be", "imageMinimumGCAge: -1s", "F:1:20: imageMinimumGCAge: -1s: must be between 0s and 876000h0m0s"},
		{"images that must go before they may", "imageMaximumGCAge: 1m", "F:1:20: imageMaximumGCAge: 1m0s: must be more than imageMinimumGCAge, 2m0s"},
		{"a maximum", "crashLoopBackOff: {maxContainerRestartPeriod: 10m}", "F:1:47: crashLoopBackOff.maxContainerRestartPeriod: 10m0s: must be between 1s and 5m0s"},
		{"a first above it", "crashLoopBackOff:\n  firstContainerRestartPeriod: 30s\n  maxContainerRestartPeriod: 20s\n", "F:2:32: crashLoopBackOff.firstContainerRestartPeriod: 30s is more than maxContainerRestartPeriod, 20s"},
		{"logs", "containerLogMaxSize: 0\ncontainerLogMaxFiles: 1\ncontainerLogMaxWorkers: 0\ncontainerLogMonitorInterval: 1ms\ndeadContainersPerContainer: 0\n",
			"F:1:22: containerLogMaxSize: 0: must not be zero; a negative size means no rotation|F:2:23: containerLogMaxFiles: 1: must be at least 2|" +
				"F:3:25: containerLogMaxWorkers: 0: must be at least 1|F:4:30: containerLogMonitorInterval: 1ms: must be between 1s and 1h0m0s|" +
				"F:5:29: deadContainersPerContainer: 0: must be at least 1"},
		{"pulls", "maxParallelImagePulls: 0", "F:1:24: maxParallelImagePulls: 0: must be at least 1"},
		{"pulls that contradict each other", "maxParallelImagePulls: 2\nserializeImagePulls: true\n", "F:1:24: maxParallelImagePulls: 2 contradicts serializeImagePulls: true"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, got := readText(t, t.TempDir(), row.text, Config{})
			want := strings.Split(row.want, "|")
			problems := strings.Split(got, "|")
			same := len(problems) == len(want)
			for k := 0; same && k < len(want); k++ {
				same = strings.HasPrefix(problems[k], want[k])
			}
			if !same {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// configFields returns the dotted names of all fields that mean something.
func configFields(t reflect.Type, prefix string) (names []string) {
	for k := range t.NumField() {
		f := t.Field(k)
		name := prefix + f.Tag.Get("json")
		switch {
		case f.Anonymous, name == "kind", name == "apiVersion":
		case f.Type == reflect.TypeFor[*configBackOff]():
			names = append(names, configFields(f.Type.Elem(), name+".")...)
		default:
			names = append(names, name)
		}
	}
	return names
}

// Each field is documented once, in the order of the file, and another value
// than its default changes the settings.
func TestEveryFieldIsDocumentedAndCounts(t *testing.T) {
	other := map[string]string{
		"staticPodPath": "/m", "nodeName": "other", "podNameSuffix": "false", "nodeLabels": "{a: b}", "fieldValidation": "Ignore",
		"containerRuntimeEndpoint": "/r", "runtimeClasses": "{a: b}", "root": "/r", "podLogsDir": "/l", "listen": "127.0.0.1:1",
		"socket": "/s", "resolvConf": "/r", "clusterDNS": "[10.0.0.1]", "clusterDomain": "c", "cgroupDriver": "systemd", "cgroupRoot": "/c",
		"cgroupsPerQOS": "false", "enforceNodeAllocatable": "[]", "systemReserved": "{cpu: 1m}", "kubeReserved": "{cpu: 1m}",
		"evictionHard": "{memory.available: 1Mi}", "maxPods": "9", "podsPerCore": "9", "podPidsLimit": "9", "cpuCFSQuota": "false",
		"cpuCFSQuotaPeriod": "1ms", "singleProcessOOMKill": "true", "failSwapOn": "true", "seccompDefault": "true",
		"allowedUnsafeSysctls": "[net.*]", "crashLoopBackOff.firstContainerRestartPeriod": "1s", "crashLoopBackOff.maxContainerRestartPeriod": "1m",
		"serializeImagePulls": "true", "maxParallelImagePulls": "9", "registryPullQPS": "9", "registryBurst": "9",
		"imageGCHighThresholdPercent": "90", "imageGCLowThresholdPercent": "70", "imageMinimumGCAge": "1m", "imageMaximumGCAge": "1h",
		"containerLogMaxSize": "-1", "containerLogMaxFiles": "9", "containerLogMonitorInterval": "9s", "containerLogMaxWorkers": "9", "deadContainersPerContainer": "9",
	}
	var documented []string
	for _, row := range configRows() {
		documented = append(documented, row.name)
		if row.about == "" || row.fallback == "" {
			t.Errorf("%s: nothing is said about it", row.name)
		}
		object, name, nested := strings.Cut(row.name, ".")
		text := row.name + ": " + other[row.name]
		if nested {
			text = fmt.Sprintf("%s: {%s: %s}", object, name, other[row.name])
		}
		base := Config{Listen: DefaultListen}
		got, wrong := readText(t, t.TempDir(), text, base)
		if wrong != "" || equality.Semantic.DeepEqual(got, base) {
			t.Errorf("%s: changes nothing %s", text, wrong)
		}
	}
	if fields := configFields(reflect.TypeFor[configFile](), ""); !reflect.DeepEqual(fields, documented) {
		t.Errorf("fields:\n%v\ndocumented:\n%v", fields, documented)
	}
}

// A file of defaults is as good as none.
func TestDefaultsRoundTrip(t *testing.T) {
	var b strings.Builder
	if err := PrintConfigDefaults(&b); err != nil {
		t.Fatal(err)
	}
	base := Config{Listen: DefaultListen}
	got, wrong := readText(t, t.TempDir(), b.String(), base)
	if wrong != "" {
		t.Fatal(wrong)
	}
	got.Manifests, base.Manifests = "/m", "/m"
	got, err := got.complete()
	if err != nil {
		t.Fatal(err)
	}
	want, err := base.complete()
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// No field is listed twice, and what is to be seen instead is there.
func TestNoFieldIsBothUsedAndUnused(t *testing.T) {
	used := map[string]bool{}
	for _, name := range configFields(reflect.TypeFor[configFile](), "") {
		used[name] = true
	}
	unused := reflect.TypeFor[configUnused]()
	if unused.NumField() < 90 {
		t.Errorf("only %d of a kubelet's fields are accepted besides", unused.NumField())
	}
	for k := range unused.NumField() {
		f := unused.Field(k)
		name, instead := f.Tag.Get("json"), f.Tag.Get("instead")
		if used[name] || name == "" || instead != "" && !used[instead] {
			t.Errorf("%s, instead %q", name, instead)
		}
	}
}

// A kubelet's file, as a cluster's tools write it: nothing in it is an error.
func TestAKubeletsFileCanBeDroppedIn(t *testing.T) {
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" +
		"authentication:\n  anonymous: {enabled: false}\n  webhook: {cacheTTL: 0s, enabled: true}\n  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}\n" +
		"authorization: {mode: Webhook}\ncgroupDriver: systemd\nclusterDNS:\n- 10.96.0.10\nclusterDomain: cluster.local\n" +
		"containerRuntimeEndpoint: \"\"\ncpuManagerReconcilePeriod: 0s\ncrashLoopBackOff: {}\nmaxPods: 0\nfailCgroupV1: false\n" +
		"healthzPort: 10248\nlogging: {flushFrequency: 0, options: {json: {infoBufferSize: \"0\"}}, verbosity: 0}\nmemorySwap: {}\n" +
		"evictionHard: {memory.available: 100Mi, imagefs.inodesFree: 5%}\nrotateCertificates: true\nstaticPodPath: /etc/kubernetes/manifests\n"
	c, got := readText(t, t.TempDir(), text, Config{NodeName: "n"})
	for part := range strings.SplitSeq(got, "|") {
		if !strings.HasPrefix(part, "~F:") || !strings.Contains(part, "has no effect here") {
			t.Error(part)
		}
	}
	if n := strings.Count(got, "~"); n != 8 {
		t.Errorf("%d warnings:\n%s", n, got)
	}
	if c, err := c.complete(); err != nil || c.Manifests != "/etc/kubernetes/manifests" || c.FallbackDriver != "systemd" || c.MaxPods != 110 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestReadConfigThatIsNotThere(t *testing.T) {
	_, _, err := ReadConfig("/nowhere/c.yaml", Config{})
	if want := "read settings: open /nowhere/c.yaml: no such file or directory"; errText(err) != want {
		t.Errorf("got %q", errText(err))
	}
}

func TestFailSwapOn(t *testing.T) {
	for text, want := range map[string]string{"Filename Type\n": "", "Filename Type\n/dev/sda2 partition\n": "the machine has swap"} {
		path := filepath.Join(t.TempDir(), "swaps")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := (Config{FailSwapOn: true}).checkSwap(path); !strings.Contains(errText(err), want) || (err == nil) != (want == "") {
			t.Errorf("%q: %v", text, err)
		}
		if err := (Config{}).checkSwap(path); err != nil {
			t.Errorf("unasked: %v", err)
		}
	}
}

// What the file says reaches the pods.
func TestSettingsReachPods(t *testing.T) {
	cfg, wrong := readText(t, t.TempDir(), "podNameSuffix: false\nfieldValidation: Ignore\nseccompDefault: true\npodPidsLimit: 7\ncpuCFSQuotaPeriod: 5ms\n"+
		"clusterDNS: [10.0.0.9]\nresolvConf: ''\nruntimeClasses: {gvisor: runsc}\n", Config{NodeName: "n", Root: t.TempDir(), ResolvConf: "/nowhere"})
	if wrong != "" {
		t.Fatal(wrong)
	}
	pods, problems := manifests.Decode("/m/a.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {zebra: 1, runtimeClassName: gvisor, containers: [{name: c, image: i}]}\n"), cfg.manifestOptions())
	if len(pods) != 1 || pods[0].Name != "a" {
		t.Fatalf("pods %v, problems %v", pods, problems)
	}
	m, err := newMachine(cfg, "i")
	if err != nil {
		t.Fatal(err)
	}
	n := m.Now()
	if !n.SeccompDefault || n.PodPids != 7 || n.CFSPeriod != 5000 || len(n.ClusterDNS) != 1 || len(n.Resolv.Servers) == 0 {
		t.Errorf("%+v", n)
	}
}
