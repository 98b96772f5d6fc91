package agent

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests"
)

// configFile is what a file of settings may say: fields of KubeletConfiguration
// that have a meaning here, named and meant as there, and our own. What is nil
// is not given. Each field has a row in configRows.
type configFile struct {
	APIVersion *string `json:"apiVersion"`
	Kind       *string `json:"kind"`

	StaticPodPath            *string           `json:"staticPodPath"`
	NodeName                 *string           `json:"nodeName"`
	PodNameSuffix            *bool             `json:"podNameSuffix"`
	NodeLabels               map[string]string `json:"nodeLabels"`
	FieldValidation          *string           `json:"fieldValidation"`
	ContainerRuntimeEndpoint *string           `json:"containerRuntimeEndpoint"`
	RuntimeClasses           map[string]string `json:"runtimeClasses"`
	Root                     *string           `json:"root"`
	PodLogsDir               *string           `json:"podLogsDir"`
	Listen                   *string           `json:"listen"`
	Socket                   *string           `json:"socket"`

	TLSCertFile       *string               `json:"tlsCertFile"`
	TLSPrivateKeyFile *string               `json:"tlsPrivateKeyFile"`
	TLSCipherSuites   []string              `json:"tlsCipherSuites"`
	TLSMinVersion     *string               `json:"tlsMinVersion"`
	Authentication    *configAuthentication `json:"authentication"`
	TokenFile         *string               `json:"tokenFile"`
	LogLevel          *string               `json:"logLevel"`

	ResolvConf    *string  `json:"resolvConf"`
	ClusterDNS    []string `json:"clusterDNS"`
	ClusterDomain *string  `json:"clusterDomain"`

	CgroupDriver           *string                      `json:"cgroupDriver"`
	CgroupRoot             *string                      `json:"cgroupRoot"`
	CgroupsPerQOS          *bool                        `json:"cgroupsPerQOS"`
	EnforceNodeAllocatable *[]string                    `json:"enforceNodeAllocatable"`
	SystemReserved         map[string]resource.Quantity `json:"systemReserved"`
	KubeReserved           map[string]resource.Quantity `json:"kubeReserved"`
	EvictionHard           map[string]string            `json:"evictionHard"`
	MaxPods                *int64                       `json:"maxPods"`
	PodsPerCore            *int64                       `json:"podsPerCore"`
	PodPidsLimit           *int64                       `json:"podPidsLimit"`
	CPUCFSQuota            *bool                        `json:"cpuCFSQuota"`
	CPUCFSQuotaPeriod      *metav1.Duration             `json:"cpuCFSQuotaPeriod"`
	SingleProcessOOMKill   *bool                        `json:"singleProcessOOMKill"`
	FailSwapOn             *bool                        `json:"failSwapOn"`

	SeccompDefault       *bool    `json:"seccompDefault"`
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls"`

	CrashLoopBackOff      *configBackOff `json:"crashLoopBackOff"`
	SerializeImagePulls   *bool          `json:"serializeImagePulls"`
	MaxParallelImagePulls *int           `json:"maxParallelImagePulls"`
	RegistryPullQPS       *int           `json:"registryPullQPS"`
	RegistryBurst         *int           `json:"registryBurst"`

	ImageGCHighThresholdPercent *int             `json:"imageGCHighThresholdPercent"`
	ImageGCLowThresholdPercent  *int             `json:"imageGCLowThresholdPercent"`
	ImageMinimumGCAge           *metav1.Duration `json:"imageMinimumGCAge"`
	ImageMaximumGCAge           *metav1.Duration `json:"imageMaximumGCAge"`

	ContainerLogMaxSize         *resource.Quantity `json:"containerLogMaxSize"`
	ContainerLogMaxFiles        *int               `json:"containerLogMaxFiles"`
	ContainerLogMonitorInterval *metav1.Duration   `json:"containerLogMonitorInterval"`
	ContainerLogMaxWorkers      *int               `json:"containerLogMaxWorkers"`
	DeadContainersPerContainer  *int               `json:"deadContainersPerContainer"`

	configUnused
}

// configBackOff is crashLoopBackOff: the maximum is the kubelet's, the first ours.
type configBackOff struct {
	First *metav1.Duration `json:"firstContainerRestartPeriod"`
	Max   *metav1.Duration `json:"maxContainerRestartPeriod"`
}

// configAuthentication is who may use the endpoint.
type configAuthentication struct {
	X509      *configX509 `json:"x509"`
	Anonymous unused      `json:"anonymous"`
	Webhook   unused      `json:"webhook"`
}

type configX509 struct {
	ClientCAFile *string `json:"clientCAFile"`
}

// configReader takes what a file says into settings.
type configReader struct {
	*manifests.Settings
	file configFile
	dir  string // of the file: what relative paths are relative to
	to   *Config
}

// ReadConfig returns c with what a file of settings says, YAML or JSON, and
// warnings about what of it has no effect. The error has a line for each thing
// that is wrong, with file, line and column.
func ReadConfig(path string, c Config) (Config, []manifests.Problem, error) {
	data, err := manifests.ReadFile(path)
	if err != nil {
		return c, nil, fmt.Errorf("read settings: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return c, nil, fmt.Errorf("read settings %s: %w", path, err)
	}
	r := &configReader{dir: dir, to: &c}
	r.Settings = manifests.ReadSettings(path, data, &r.file)
	for _, take := range []func(){r.version, r.places, r.access, r.logging, r.node, r.network, r.cgroups, r.reserve, r.amounts, r.security, r.pulls, r.images, r.backOff, r.logs, r.unused} {
		take()
	}
	var warnings []manifests.Problem
	var wrong []error
	for _, p := range r.Problems() {
		if p.Warning {
			warnings = append(warnings, p)
		} else {
			wrong = append(wrong, p)
		}
	}
	return c, warnings, errors.Join(wrong...)
}

// set takes a value that is given.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// version accepts a file that says what it is.
func (r *configReader) version() {
	if kind := r.file.Kind; kind != nil && *kind != "KubeletConfiguration" {
		r.Refuse("kind", "%q: settings are of kind KubeletConfiguration, or do not say", *kind)
	}
	if v := r.file.APIVersion; v != nil && *v != "kubelet.config.k8s.io/v1beta1" {
		r.Refuse("apiVersion", "%q: settings are of kubelet.config.k8s.io/v1beta1, or do not say", *v)
	}
}

// unused warns of the fields that only a kubelet heeds.
func (r *configReader) unused() {
	v := reflect.ValueOf(r.file.configUnused)
	for k := range v.NumField() {
		if !v.Field(k).Bool() {
			continue
		}
		field := v.Type().Field(k)
		if instead := field.Tag.Get("instead"); instead != "" {
			r.Warn(field.Tag.Get("json"), "has no effect here: see %s", instead)
		} else {
			r.Warn(field.Tag.Get("json"), "has no effect here")
		}
	}
}
