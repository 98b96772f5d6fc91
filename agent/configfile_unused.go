package agent

// unused is a field that is accepted and has no effect; true: it is given.
type unused bool

// UnmarshalJSON accepts any value.
func (u *unused) UnmarshalJSON([]byte) error {
	*u = true
	return nil
}

// configUnused are the other fields of KubeletConfiguration v1beta1: a
// kubelet's file can be used as it is. Tags name what to look at instead.
type configUnused struct {
	EnableServer                   unused `json:"enableServer"`
	SyncFrequency                  unused `json:"syncFrequency"`
	FileCheckFrequency             unused `json:"fileCheckFrequency"`
	HttpCheckFrequency             unused `json:"httpCheckFrequency"`
	StaticPodURL                   unused `json:"staticPodURL"`
	StaticPodURLHeader             unused `json:"staticPodURLHeader"`
	Address                        unused `json:"address" instead:"listen"`
	Port                           unused `json:"port" instead:"listen"`
	ReadOnlyPort                   unused `json:"readOnlyPort" instead:"listen"`
	TlsCurvePreferences            unused `json:"tlsCurvePreferences"`
	RotateCertificates             unused `json:"rotateCertificates"`
	ServerTLSBootstrap             unused `json:"serverTLSBootstrap" instead:"tlsCertFile"`
	Authorization                  unused `json:"authorization"`
	EnableDebuggingHandlers        unused `json:"enableDebuggingHandlers"`
	EnableContentionProfiling      unused `json:"enableContentionProfiling"`
	EnableProfilingHandler         unused `json:"enableProfilingHandler"`
	EnableDebugFlagsHandler        unused `json:"enableDebugFlagsHandler"`
	EnableSystemLogHandler         unused `json:"enableSystemLogHandler"`
	EnableSystemLogQuery           unused `json:"enableSystemLogQuery"`
	HealthzPort                    unused `json:"healthzPort" instead:"listen"`
	HealthzBindAddress             unused `json:"healthzBindAddress" instead:"listen"`
	StreamingConnectionIdleTimeout unused `json:"streamingConnectionIdleTimeout"`
	ShowHiddenMetricsForVersion    unused `json:"showHiddenMetricsForVersion"`

	ImageServiceEndpoint                   unused `json:"imageServiceEndpoint" instead:"containerRuntimeEndpoint"`
	ImagePullCredentialsVerificationPolicy unused `json:"imagePullCredentialsVerificationPolicy"`
	PreloadedImagesVerificationAllowlist   unused `json:"preloadedImagesVerificationAllowlist"`
	RuntimeRequestTimeout                  unused `json:"runtimeRequestTimeout"`

	EventRecordQPS                            unused `json:"eventRecordQPS"`
	EventBurst                                unused `json:"eventBurst"`
	NodeStatusUpdateFrequency                 unused `json:"nodeStatusUpdateFrequency"`
	NodeStatusReportFrequency                 unused `json:"nodeStatusReportFrequency"`
	NodeStatusMaxImages                       unused `json:"nodeStatusMaxImages"`
	NodeLeaseDurationSeconds                  unused `json:"nodeLeaseDurationSeconds"`
	RegisterNode                              unused `json:"registerNode"`
	RegisterWithTaints                        unused `json:"registerWithTaints"`
	ProviderID                                unused `json:"providerID"`
	ContentType                               unused `json:"contentType"`
	KubeAPIQPS                                unused `json:"kubeAPIQPS"`
	KubeAPIBurst                              unused `json:"kubeAPIBurst"`
	ConfigMapAndSecretChangeDetectionStrategy unused `json:"configMapAndSecretChangeDetectionStrategy"`
	EnableControllerAttachDetach              unused `json:"enableControllerAttachDetach"`

	OomScoreAdj                  unused `json:"oomScoreAdj"`
	MaxOpenFiles                 unused `json:"maxOpenFiles"`
	KubeletCgroups               unused `json:"kubeletCgroups"`
	SystemCgroups                unused `json:"systemCgroups"`
	SystemReservedCgroup         unused `json:"systemReservedCgroup"`
	KubeReservedCgroup           unused `json:"kubeReservedCgroup"`
	ReservedSystemCPUs           unused `json:"reservedSystemCPUs"`
	ReservedMemory               unused `json:"reservedMemory"`
	QosReserved                  unused `json:"qosReserved"`
	FailCgroupV1                 unused `json:"failCgroupV1"`
	CpuManagerPolicy             unused `json:"cpuManagerPolicy"`
	CpuManagerPolicyOptions      unused `json:"cpuManagerPolicyOptions"`
	CpuManagerReconcilePeriod    unused `json:"cpuManagerReconcilePeriod"`
	MemoryManagerPolicy          unused `json:"memoryManagerPolicy"`
	TopologyManagerPolicy        unused `json:"topologyManagerPolicy"`
	TopologyManagerScope         unused `json:"topologyManagerScope"`
	TopologyManagerPolicyOptions unused `json:"topologyManagerPolicyOptions"`
	MemorySwap                   unused `json:"memorySwap"`
	MemoryThrottlingFactor       unused `json:"memoryThrottlingFactor"`
	MemoryReservationPolicy      unused `json:"memoryReservationPolicy"`
	ProtectKernelDefaults        unused `json:"protectKernelDefaults"`
	UserNamespaces               unused `json:"userNamespaces"`

	EvictionSoft                     unused `json:"evictionSoft"`
	EvictionSoftGracePeriod          unused `json:"evictionSoftGracePeriod"`
	EvictionPressureTransitionPeriod unused `json:"evictionPressureTransitionPeriod"`
	EvictionMaxPodGracePeriod        unused `json:"evictionMaxPodGracePeriod"`
	EvictionMinimumReclaim           unused `json:"evictionMinimumReclaim"`
	MergeDefaultEvictionSettings     unused `json:"mergeDefaultEvictionSettings"`
	KernelMemcgNotification          unused `json:"kernelMemcgNotification"`
	LocalStorageCapacityIsolation    unused `json:"localStorageCapacityIsolation"`
	VolumeStatsAggPeriod             unused `json:"volumeStatsAggPeriod"`
	VolumePluginDir                  unused `json:"volumePluginDir"`

	ShutdownGracePeriod              unused `json:"shutdownGracePeriod"`
	ShutdownGracePeriodCriticalPods  unused `json:"shutdownGracePeriodCriticalPods"`
	ShutdownGracePeriodByPodPriority unused `json:"shutdownGracePeriodByPodPriority"`

	PodCIDR                unused `json:"podCIDR"`
	HairpinMode            unused `json:"hairpinMode"`
	MakeIPTablesUtilChains unused `json:"makeIPTablesUtilChains"`
	IptablesMasqueradeBit  unused `json:"iptablesMasqueradeBit"`
	IptablesDropBit        unused `json:"iptablesDropBit"`
	RunOnce                unused `json:"runOnce"`
	FeatureGates           unused `json:"featureGates"`
	Logging                unused `json:"logging"`
	Tracing                unused `json:"tracing"`
}
