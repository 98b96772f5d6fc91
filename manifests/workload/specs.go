package workload

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/decode"
)

// kinds are the kinds from which a pod is made, each in one version.
var kinds = map[string]struct {
	version string
	read    func(*decode.Reader, decode.Object) (*Workload, metav1.ObjectMeta)
}{
	"Deployment":  {"apps/v1", read[deploymentSpec]},
	"ReplicaSet":  {"apps/v1", read[replicaSetSpec]},
	"DaemonSet":   {"apps/v1", read[daemonSetSpec]},
	"StatefulSet": {"apps/v1", read[setSpec]},
	"Job":         {"batch/v1", read[jobSpec]},
}

// Version returns the supported apiVersion of a kind, "" if no pod is made from it.
func Version(kind string) string { return kinds[kind].version }

// document is a workload as it is written. Fields of type any, here and in its spec, are accepted
// and not checked.
type document[S workloadSpec] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              S   `json:"spec"`
	Status            any `json:"status"`
}

type workloadSpec interface{ workload() *Workload }

func read[S workloadSpec](r *decode.Reader, o decode.Object) (*Workload, metav1.ObjectMeta) {
	var d document[S]
	r.Read(o, &d)
	return d.Spec.workload(), d.ObjectMeta
}

// templated has the fields of all workloads.
type templated struct {
	Selector *metav1.LabelSelector `json:"selector"`
	Template v1.PodTemplateSpec    `json:"template"`
}

type deploymentSpec struct {
	templated
	Replicas                *int32 `json:"replicas"`
	Strategy                any    `json:"strategy"`
	MinReadySeconds         any    `json:"minReadySeconds"`
	RevisionHistoryLimit    any    `json:"revisionHistoryLimit"`
	Paused                  any    `json:"paused"`
	ProgressDeadlineSeconds any    `json:"progressDeadlineSeconds"`
}

func (s deploymentSpec) workload() *Workload {
	return &Workload{templated: s.templated, replicas: s.Replicas}
}

type replicaSetSpec struct {
	templated
	Replicas        *int32 `json:"replicas"`
	MinReadySeconds any    `json:"minReadySeconds"`
}

func (s replicaSetSpec) workload() *Workload {
	return &Workload{templated: s.templated, replicas: s.Replicas}
}

type daemonSetSpec struct {
	templated
	UpdateStrategy       any `json:"updateStrategy"`
	MinReadySeconds      any `json:"minReadySeconds"`
	RevisionHistoryLimit any `json:"revisionHistoryLimit"`
}

func (s daemonSetSpec) workload() *Workload { return &Workload{templated: s.templated} }

// setSpec is the spec of a StatefulSet.
type setSpec struct {
	templated
	Replicas             *int32                     `json:"replicas"`
	VolumeClaimTemplates []v1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	ServiceName          string                     `json:"serviceName"`
	Ordinals             *struct {
		Start int32 `json:"start"`
	} `json:"ordinals"`
	PodManagementPolicy                  any `json:"podManagementPolicy"`
	UpdateStrategy                       any `json:"updateStrategy"`
	RevisionHistoryLimit                 any `json:"revisionHistoryLimit"`
	MinReadySeconds                      any `json:"minReadySeconds"`
	PersistentVolumeClaimRetentionPolicy any `json:"persistentVolumeClaimRetentionPolicy"`
}

func (s setSpec) workload() *Workload {
	return &Workload{templated: s.templated, replicas: s.Replicas, set: &s}
}

// ordinal returns the number of the set's first pod.
func (s *setSpec) ordinal() int32 {
	if s.Ordinals == nil {
		return 0
	}
	return s.Ordinals.Start
}

type jobSpec struct {
	templated
	Parallelism             *int32 `json:"parallelism"`
	Completions             *int32 `json:"completions"`
	ActiveDeadlineSeconds   *int64 `json:"activeDeadlineSeconds"`
	BackoffLimit            *int32 `json:"backoffLimit"`
	Suspend                 *bool  `json:"suspend"`
	ManualSelector          any    `json:"manualSelector"`
	CompletionMode          any    `json:"completionMode"`
	PodFailurePolicy        any    `json:"podFailurePolicy"`
	SuccessPolicy           any    `json:"successPolicy"`
	BackoffLimitPerIndex    any    `json:"backoffLimitPerIndex"`
	MaxFailedIndexes        any    `json:"maxFailedIndexes"`
	TTLSecondsAfterFinished any    `json:"ttlSecondsAfterFinished"`
	PodReplacementPolicy    any    `json:"podReplacementPolicy"`
	ManagedBy               any    `json:"managedBy"`
}

func (s jobSpec) workload() *Workload { return &Workload{templated: s.templated, job: &s} }

// ignored returns the fields that are set but have no effect here, although a cluster would use
// them.
func (s *jobSpec) ignored() map[string]any {
	all := map[string]any{
		"completionMode": s.CompletionMode, "podFailurePolicy": s.PodFailurePolicy, "successPolicy": s.SuccessPolicy,
		"backoffLimitPerIndex": s.BackoffLimitPerIndex, "maxFailedIndexes": s.MaxFailedIndexes,
		"ttlSecondsAfterFinished": s.TTLSecondsAfterFinished, "podReplacementPolicy": s.PodReplacementPolicy,
		"managedBy": s.ManagedBy,
	}
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil || value == "NonIndexed" })
	return all
}
