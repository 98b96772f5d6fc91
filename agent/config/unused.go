package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// unused is a field of KubeletConfiguration that is accepted, so that a kubelet's
// file can be used as it is, and that has no effect.
type unused struct {
	name    string
	reason  string // why
	instead string // what to set; "": there is nothing
	given   ignored
}

// ignored is any value; true: there is one that says something. Configurations that tools
// write out have many zeros, which mean the default.
type ignored bool

func (i *ignored) UnmarshalJSON(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	*i = ignored(!isZero(value))
	return nil
}

// isZero reports whether a value is a zero, or holds nothing else.
func isZero(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(one any) bool { return !isZero(one) })
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !isZero(one) })
	}
	return value == nil || value == false || value == 0.0 || value == "" || value == "0" || value == "0s"
}

// unusedFields returns the fields of KubeletConfiguration v1beta1 that are no
// settings here, by the reason why.
func unusedFields() []*unused {
	var all []*unused
	for _, group := range []struct{ reason, instead, names string }{
		{"the endpoint is one address", "listen", "address port readOnlyPort healthzPort healthzBindAddress"},
		{"the endpoint has what it has", "", `enableServer enableDebuggingHandlers enableContentionProfiling enableProfilingHandler
			enableDebugFlagsHandler enableSystemLogHandler enableSystemLogQuery streamingConnectionIdleTimeout showHiddenMetricsForVersion`},
		{"certificates and tokens are files", "tlsCertFile", "serverTLSBootstrap"},
		{"certificates and tokens are files", "", "tlsCurvePreferences rotateCertificates authentication.anonymous authentication.webhook authorization"},
		{"one socket serves both", "containerRuntimeEndpoint", "imageServiceEndpoint"},
		{"each call to the runtime has its own timeout", "", "runtimeRequestTimeout"},
		{"what the manifests and pods are is noticed at once", "", "syncFrequency fileCheckFrequency"},
		{"there is no API server", "", `eventRecordQPS eventBurst nodeStatusUpdateFrequency nodeStatusReportFrequency nodeStatusMaxImages
			nodeLeaseDurationSeconds registerNode registerWithTaints providerID contentType kubeAPIQPS kubeAPIBurst
			configMapAndSecretChangeDetectionStrategy enableControllerAttachDetach runOnce`},
		{"pulled images are not verified", "", "imagePullCredentialsVerificationPolicy preloadedImagesVerificationAllowlist"},
		{"the agent's own process is its service manager's", "", "oomScoreAdj maxOpenFiles kubeletCgroups systemCgroups systemReservedCgroup kubeReservedCgroup"},
		{"pods share all cores and memory nodes", "", `reservedSystemCPUs reservedMemory cpuManagerPolicy cpuManagerPolicyOptions
			cpuManagerReconcilePeriod memoryManagerPolicy topologyManagerPolicy topologyManagerScope topologyManagerPolicyOptions`},
		{"cgroups and kernels are taken as they are", "", `qosReserved failCgroupV1 memorySwap memoryThrottlingFactor memoryReservationPolicy
			protectKernelDefaults userNamespaces`},
		{"networks of pods are the runtime's", "", "podCIDR hairpinMode makeIPTablesUtilChains iptablesMasqueradeBit iptablesDropBit"},
		{"pods are not evicted", "", `evictionSoft evictionSoftGracePeriod evictionPressureTransitionPeriod evictionMaxPodGracePeriod
			evictionMinimumReclaim mergeDefaultEvictionSettings kernelMemcgNotification localStorageCapacityIsolation volumeStatsAggPeriod`},
		{"there are no volume plugins", "", "volumePluginDir"},
		{"the log has a level and a format, and no feature is optional", "", "featureGates logging tracing"},
	} {
		for name := range strings.FieldsSeq(group.names) {
			all = append(all, &unused{name: name, reason: group.reason, instead: group.instead})
		}
	}
	return all
}
