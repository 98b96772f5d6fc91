package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// unused is a field of KubeletConfiguration that is accepted, so that a kubelet's file can be used
// as it is, and that has no effect.
type unused struct {
	name    string
	reason  string // why
	instead string // what to set; "": nothing
	given   ignored
}

// ignored is any value.
type ignored struct{ value any }

func (i *ignored) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &i.value) }

// hasValue reports whether there is a value other than zeros. Configurations that tools write have
// many zeros, which mean the default.
func (i *ignored) hasValue() bool { return !isZero(i.value) }

// absent is a field of KubeletConfiguration that may request what does not exist here: its author
// relies on it, unlike on a field that has no effect.
type absent struct {
	name     string
	harmless string // the value, besides none, that requests nothing
	words    string // what does not exist
	given    ignored
}

// isRequested reports whether the field requests something.
func (a *absent) isRequested() bool {
	text, isText := a.given.value.(string)
	if isText {
		return text != "" && text != a.harmless
	}
	return !isZero(a.given.value)
}

func absentFields() []*absent {
	return []*absent{
		{name: "memoryManagerPolicy", harmless: "None", words: "no container gets memory nodes of its own here, pods share them all: write None, or remove it"},
		{name: "topologyManagerPolicy", harmless: "none", words: "nothing is placed by the machine's topology here: write none, or remove it"},
		{name: "memorySwap.swapBehavior", harmless: "NoSwap", words: "containers get no swap here: write NoSwap, or remove it"},
		{name: "reservedMemory", words: "no memory of a node is kept from pods here: reserve an amount with systemReserved, and remove it"},
		{name: "qosReserved", words: "no memory is kept for pods of a better class here: remove it"},
	}
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

// unusedFields returns the fields of KubeletConfiguration v1beta1 that are no settings here, by
// the reason.
func unusedFields() []*unused {
	var all []*unused
	for _, group := range []struct{ reason, instead, names string }{
		{"the endpoint is one address", "listen", "address port readOnlyPort"},
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
		{"the agent's own process is its service manager's", "", "oomScoreAdj maxOpenFiles kubeletCgroups systemCgroups"},
		{"nothing is placed by the machine's topology", "", "topologyManagerScope topologyManagerPolicyOptions"},
		{"cgroups and kernels are taken as they are", "", `failCgroupV1 memoryThrottlingFactor memoryReservationPolicy
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
