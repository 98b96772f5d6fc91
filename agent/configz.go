package agent

import (
	"crypto/tls"
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"monopod/cgroups"
)

// fields returns all settings as a file of settings has them, by the names of
// configRows: a file that says them is read as these settings. The settings must
// be complete.
func (c Config) fields() map[string]any {
	all := map[string]any{
		"staticPodPath": c.Manifests, "nodeName": c.NodeName, "podNameSuffix": !c.NoNameSuffix, "nodeLabels": orEmpty(c.NodeLabels),
		"fieldValidation": c.Validation, "containerRuntimeEndpoint": c.Endpoint, "runtimeClasses": orEmpty(c.RuntimeClasses),
		"root": c.Root, "podLogsDir": c.PodLogs, "listen": c.Listen, "socket": c.Socket,

		"tlsCertFile": c.Access.Cert, "tlsPrivateKeyFile": c.Access.Key, "tokenFile": c.Access.Tokens,
		"authentication.x509.clientCAFile": c.Access.ClientCA,
		"tlsMinVersion":                    c.minTLS(),
		"tlsCipherSuites":                  c.cipherNames(),
		"logLevel":                         strings.ToLower(c.LogLevel.String()),

		"resolvConf": c.resolvConf(), "clusterDNS": orNone(c.ClusterDNS), "clusterDomain": c.ClusterDomain,

		"cgroupDriver": c.driverName(), "cgroupRoot": c.CgroupRoot, "cgroupsPerQOS": c.CgroupDriver != driverNone,
		"enforceNodeAllocatable": []string{map[bool]string{false: "pods", true: "none"}[c.Reserved.Unenforced]},
		"systemReserved":         amountsAsText(c.Reserved.System), "kubeReserved": amountsAsText(c.Reserved.Agent),
		"evictionHard": c.Reserved.freeAsText(), "maxPods": c.MaxPods, "podsPerCore": c.PodsPerCore, "podPidsLimit": c.pidsLimit(),
		"cpuCFSQuota": !c.NoCFSQuota, "cpuCFSQuotaPeriod": c.CFSPeriod.String(),
		"singleProcessOOMKill": c.SingleProcessOOMKill, "failSwapOn": c.FailSwapOn,
		"seccompDefault": c.SeccompDefault, "allowedUnsafeSysctls": orNone(c.AllowedUnsafeSysctls),
	}
	c.lifeFields(all)
	return all
}

// lifeFields adds those that say how pods live.
func (c Config) lifeFields(all map[string]any) {
	all["crashLoopBackOff.firstContainerRestartPeriod"] = c.BackOff.First.String()
	all["crashLoopBackOff.maxContainerRestartPeriod"] = c.BackOff.Max.String()
	all["serializeImagePulls"] = c.ImagePulls == 1
	if c.ImagePulls != math.MaxInt32 { // as many as are wanted is said by not saying it
		all["maxParallelImagePulls"] = c.ImagePulls
	}
	all["registryPullQPS"], all["registryBurst"] = c.Images.QPS, c.Images.Burst
	gc := c.Images.Collect
	all["imageGCHighThresholdPercent"], all["imageGCLowThresholdPercent"] = gc.High, gc.Low
	all["imageMinimumGCAge"], all["imageMaximumGCAge"] = gc.MinAge.String(), gc.MaxAge.String()
	all["containerLogMaxSize"] = resource.NewQuantity(c.Logs.MaxSize, resource.BinarySI).String()
	all["containerLogMaxFiles"], all["containerLogMaxWorkers"] = c.Logs.MaxFiles, c.Logs.Workers
	all["containerLogMonitorInterval"] = c.Logs.Interval.String()
	all["deadContainersPerContainer"] = c.DeadContainers
}

// configz returns the settings as the endpoint shows them: a file of settings.
func (c Config) configz() map[string]any {
	out := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
	for name, value := range c.fields() {
		path, at := strings.Split(name, "."), out
		for _, object := range path[:len(path)-1] {
			if at[object] == nil {
				at[object] = map[string]any{}
			}
			at = at[object].(map[string]any)
		}
		at[path[len(path)-1]] = value
	}
	return out
}

func (c Config) cipherNames() []string {
	names := []string{}
	for _, id := range c.Access.CipherSuites {
		names = append(names, tls.CipherSuiteName(id))
	}
	return names
}

func (c Config) minTLS() string {
	if c.Access.MinVersion == tls.VersionTLS13 {
		return "VersionTLS13"
	}
	return "VersionTLS12"
}

func (c Config) resolvConf() string {
	if c.NoResolvConf {
		return ""
	}
	return c.ResolvConf
}

// driverName is what of a driver a file can say: there it is the runtime's that
// counts, unless it does not say.
func (c Config) driverName() string {
	if c.CgroupDriver == driverAuto && c.FallbackDriver != string(cgroups.Cgroupfs) {
		return c.FallbackDriver
	}
	return c.CgroupDriver
}

func (c Config) pidsLimit() int64 {
	if c.PodPids == 0 {
		return -1
	}
	return c.PodPids
}

func amountsAsText(l v1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range l {
		out[string(name)] = q.String()
	}
	return out
}

// freeAsText is evictionHard.
func (r Reservations) freeAsText() map[string]string {
	signals := map[v1.ResourceName]string{v1.ResourceMemory: "memory.available", v1.ResourceEphemeralStorage: "nodefs.available"}
	out := map[string]string{}
	for name, t := range r.Free {
		if out[signals[name]] = t.Amount.String(); t.Share != 0 {
			out[signals[name]] = fmt.Sprintf("%g%%", t.Share*100)
		}
	}
	return out
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func orNone(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
