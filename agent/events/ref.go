package events

import v1 "k8s.io/api/core/v1"

// About is what events about a pod are about.
func About(p *v1.Pod) v1.ObjectReference {
	return PodRef(p.Namespace, p.Name, string(p.UID))
}

// AboutContainer is what events about one of a pod's containers are about; "": the pod.
func AboutContainer(p *v1.Pod, name string) v1.ObjectReference {
	if name == "" {
		return About(p)
	}
	return ContainerRef(About(p), &p.Spec, name)
}
