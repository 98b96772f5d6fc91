// Package defaults gives a pod the defaults that the API server would give it.
package defaults

import (
	v1 "k8s.io/api/core/v1"

	"monopod/manifests/imagename"
)

// Pod sets every default that the v1 API gives to the fields of a static pod. It does not change
// the meaning of a pod that comes from an API server.
func Pod(pod *v1.Pod) {
	spec := &pod.Spec
	orElse(&spec.RestartPolicy, v1.RestartPolicyAlways)
	orElse(&spec.DNSPolicy, v1.DNSClusterFirst)
	orElse(&spec.SchedulerName, v1.DefaultSchedulerName)
	orNew(&spec.EnableServiceLinks, true)
	orNew(&spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	if *spec.TerminationGracePeriodSeconds < 0 {
		*spec.TerminationGracePeriodSeconds = 1
	}
	orNew(&spec.SecurityContext, v1.PodSecurityContext{})
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i].VolumeSource)
	}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			defaultContainer(&list[i], spec.HostNetwork)
		}
	}
	defaultPodResources(spec)
	roundUp(spec.Overhead)
}

// orElse sets a value that is not set.
func orElse[T comparable](v *T, value T) {
	var unset T
	if *v == unset {
		*v = value
	}
}

// orNew sets a pointer that is nil.
func orNew[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func defaultVolume(v *v1.VolumeSource) {
	if *v == (v1.VolumeSource{}) {
		v.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	if v.HostPath != nil {
		orNew(&v.HostPath.Type, v1.HostPathUnset)
	}
	if v.DownwardAPI != nil {
		orNew(&v.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		defaultItems(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		orNew(&v.Projected.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
		for i := range v.Projected.Sources {
			if d := v.Projected.Sources[i].DownwardAPI; d != nil {
				defaultItems(d.Items)
			}
		}
	}
	if v.ConfigMap != nil {
		orNew(&v.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.Secret != nil {
		orNew(&v.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	}
	if v.Image != nil {
		orElse(&v.Image.PullPolicy, PullPolicy(v.Image.Reference))
	}
	if v.ISCSI != nil {
		orElse(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
		roundQuantity(v.EmptyDir.SizeLimit)
	}
}

func defaultItems(items []v1.DownwardAPIVolumeFile) {
	for i := range items {
		if f := items[i].FieldRef; f != nil {
			orElse(&f.APIVersion, "v1")
		}
	}
}

func defaultContainer(c *v1.Container, hostNetwork bool) {
	orElse(&c.ImagePullPolicy, PullPolicy(c.Image))
	orElse(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	orElse(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	for i := range c.Ports {
		p := &c.Ports[i]
		orElse(&p.Protocol, v1.ProtocolTCP)
		if hostNetwork {
			orElse(&p.HostPort, p.ContainerPort)
		}
	}
	for i := range c.Env {
		defaultEnv(c.Env[i].ValueFrom)
	}
	defaultRequests(&c.Resources)
	for _, p := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(p)
	}
	if c.Lifecycle != nil {
		for _, h := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

func defaultEnv(from *v1.EnvVarSource) {
	if from == nil {
		return
	}
	if from.FieldRef != nil {
		orElse(&from.FieldRef.APIVersion, "v1")
	}
	if from.FileKeyRef != nil {
		orNew(&from.FileKeyRef.Optional, false)
	}
}

func defaultProbe(p *v1.Probe) {
	if p == nil {
		return
	}
	orElse(&p.TimeoutSeconds, 1)
	orElse(&p.PeriodSeconds, 10)
	orElse(&p.SuccessThreshold, 1)
	orElse(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		orNew(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(h *v1.HTTPGetAction) {
	if h != nil {
		orElse(&h.Path, "/")
		orElse(&h.Scheme, v1.URISchemeHTTP)
	}
}

// PullPolicy returns Always for an image whose tag is latest, explicit or implied.
func PullPolicy(image string) v1.PullPolicy {
	name, err := imagename.Parse(image)
	if err != nil {
		return v1.PullIfNotPresent
	}
	if name.Tag == "latest" || name.Tag == "" && name.Digest == "" {
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}
