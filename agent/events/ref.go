package events

import v1 "k8s.io/api/core/v1"

// About is the object of events about a pod.
func About(p *v1.Pod) v1.ObjectReference {
	return PodRef(p.Namespace, p.Name, string(p.UID))
}

// AboutContainer is the object of events about one of a pod's containers; "": the pod.
func AboutContainer(p *v1.Pod, name string) v1.ObjectReference {
	if name == "" {
		return About(p)
	}
	return ContainerRef(About(p), &p.Spec, name)
}
