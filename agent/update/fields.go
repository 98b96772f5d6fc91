package update

import (
	"reflect"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inner stands for a field whose own fields say what a difference is.
const inner Kind = -1

// ruled stands for a field that has a rule of its own, see rule.
const ruled Kind = -2

// fieldKind is the kind of some fields, by their Go names, of a type.
type fieldKind struct {
	of     any
	kind   Kind
	fields string
}

// fieldKinds says what a difference in a field is, for each type that has fields of
// several kinds. The fields of other types are what the field is that holds them. A field
// that stands nowhere is Replace, or Restart in a container; a test sees to it that all stand here.
var fieldKinds = []fieldKind{
	{metav1.ObjectMeta{}, Nothing, "DeletionTimestamp DeletionGracePeriodSeconds ManagedFields"}, // of the instance
	{metav1.ObjectMeta{}, Live, "GenerateName SelfLink ResourceVersion Generation CreationTimestamp"},
	{metav1.ObjectMeta{}, Live, "Labels OwnerReferences Finalizers"},
	{metav1.ObjectMeta{}, Replace, "Name Namespace"},
	{metav1.ObjectMeta{}, ruled, "UID Annotations"},

	// What the agent reads when it needs it, and what nothing on a node reads.
	{v1.PodSpec{}, Live, "TerminationGracePeriodSeconds ActiveDeadlineSeconds ReadinessGates ImagePullSecrets"},
	{v1.PodSpec{}, Live, "SchedulerName EnableServiceLinks PreemptionPolicy Priority"},
	{v1.PodSpec{}, Live, "AutomountServiceAccountToken Tolerations TopologySpreadConstraints"},
	{v1.PodSpec{}, inner, "SecurityContext"},
	{v1.PodSpec{}, ruled, "Containers InitContainers Resources"},
	{v1.PodSpec{}, Replace, "Volumes EphemeralContainers RestartPolicy DNSPolicy ServiceAccountName"},
	{v1.PodSpec{}, Replace, "DeprecatedServiceAccount HostNetwork HostPID HostIPC"},
	{v1.PodSpec{}, Replace, "ShareProcessNamespace Hostname Subdomain HostAliases DNSConfig"},
	{v1.PodSpec{}, Replace, "RuntimeClassName Overhead SetHostnameAsFQDN HostUsers"},
	{v1.PodSpec{}, Replace, "HostnameOverride ResourceClaims SchedulingGates SchedulingGroup"},
	{v1.PodSpec{}, Replace, "NodeName NodeSelector Affinity OS"}, // whether it may run here
	{v1.PodSpec{}, Replace, "PriorityClassName"},                 // the OOM score

	// All of them are of the sandbox, of the volumes or of all containers.
	{v1.PodSecurityContext{}, Replace, "SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot"},
	{v1.PodSecurityContext{}, Replace, "SupplementalGroups SupplementalGroupsPolicy"},
	{v1.PodSecurityContext{}, Replace, "FSGroup Sysctls FSGroupChangePolicy SeccompProfile"},
	{v1.PodSecurityContext{}, Replace, "AppArmorProfile SELinuxChangePolicy"},

	{v1.Container{}, Live, "ImagePullPolicy ResizePolicy LivenessProbe ReadinessProbe StartupProbe"},
	{v1.Container{}, Restart, "Image Command Args WorkingDir EnvFrom VolumeMounts VolumeDevices Stdin"},
	{v1.Container{}, Restart, "StdinOnce TTY"},
	{v1.Container{}, Restart, "RestartPolicy RestartPolicyRules TerminationMessagePath TerminationMessagePolicy"},
	{v1.Container{}, inner, "Lifecycle SecurityContext"},
	{v1.Container{}, ruled, "Env Ports Resources"},
	{v1.Container{}, Replace, "Name"},

	{v1.SecurityContext{}, Restart, "Capabilities SELinuxOptions WindowsOptions RunAsUser RunAsGroup"},
	{v1.SecurityContext{}, Restart, "RunAsNonRoot ReadOnlyRootFilesystem"},
	{v1.SecurityContext{}, Restart, "AllowPrivilegeEscalation ProcMount SeccompProfile AppArmorProfile"},
	{v1.SecurityContext{}, ruled, "Privileged"},

	// postStart has run, preStop is read when the container stops; the runtime has the signal.
	{v1.Lifecycle{}, Live, "PostStart PreStop"},
	{v1.Lifecycle{}, Restart, "StopSignal"},

	// Those of a field that is Live are named, so that a new one is looked at.
	{v1.LifecycleHandler{}, Live, "Exec HTTPGet TCPSocket Sleep"},
	{v1.Probe{}, Live, "ProbeHandler InitialDelaySeconds TimeoutSeconds PeriodSeconds SuccessThreshold"},
	{v1.Probe{}, Live, "FailureThreshold TerminationGracePeriodSeconds"},
	{v1.ProbeHandler{}, Live, "Exec HTTPGet TCPSocket GRPC"},
	{v1.ExecAction{}, Live, "Command"},
	{v1.HTTPGetAction{}, Live, "Path Port Host Scheme HTTPHeaders"},
	{v1.HTTPHeader{}, Live, "Name Value"},
	{v1.TCPSocketAction{}, Live, "Port Host"},
	{v1.GRPCAction{}, Live, "Port Service"},
	{v1.SleepAction{}, Live, "Seconds"},
	{v1.ContainerResizePolicy{}, Live, "ResourceName RestartPolicy"},
	{v1.PodReadinessGate{}, Live, "ConditionType"},
	{v1.LocalObjectReference{}, Live, "Name"}, // of a pull secret
	{v1.Toleration{}, Live, "Key Operator Value Effect TolerationSeconds"},
	{v1.TopologySpreadConstraint{}, Live, "MaxSkew TopologyKey WhenUnsatisfiable LabelSelector"},
	{v1.TopologySpreadConstraint{}, Live, "MinDomains NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys"},
	{metav1.LabelSelector{}, Live, "MatchLabels MatchExpressions"},
	{metav1.LabelSelectorRequirement{}, Live, "Key Operator Values"},
	{metav1.OwnerReference{}, Live, "APIVersion Kind Name UID Controller BlockOwnerDeletion"},
}

// kindsOf returns the kinds of a type's fields by their Go names; nil: those of the
// field that holds it.
func kindsOf(t reflect.Type) map[string]Kind { return kindTable()[t] }

var kindTable = sync.OnceValue(func() map[reflect.Type]map[string]Kind {
	all := map[reflect.Type]map[string]Kind{}
	for _, row := range fieldKinds {
		t := reflect.TypeOf(row.of)
		if all[t] == nil {
			all[t] = map[string]Kind{}
		}
		for _, name := range strings.Fields(row.fields) {
			all[t][name] = row.kind
		}
	}
	return all
})

// unset returns what a pointer stands for that is nil, a pointer itself; nil: nothing else
// means the same. field is as in PodSpec.HostUsers.
func unset(field string) any {
	switch field {
	case "PodSpec.HostUsers", "SecurityContext.AllowPrivilegeEscalation":
		return new(true)
	case "PodSpec.ShareProcessNamespace", "PodSpec.SetHostnameAsFQDN",
		"SecurityContext.Privileged", "SecurityContext.ReadOnlyRootFilesystem":
		return new(false)
	case "SecurityContext.ProcMount":
		return new(v1.DefaultProcMount)
	case "VolumeMount.MountPropagation":
		return new(v1.MountPropagationNone)
	case "VolumeMount.RecursiveReadOnly":
		return new(v1.RecursiveReadOnlyDisabled)
	case "PodSpec.SecurityContext":
		return &v1.PodSecurityContext{}
	case "PodSpec.DNSConfig":
		return &v1.PodDNSConfig{}
	case "PodSpec.Affinity":
		return &v1.Affinity{}
	case "Container.SecurityContext":
		return &v1.SecurityContext{}
	case "Container.Lifecycle":
		return &v1.Lifecycle{}
	}
	return nil
}
