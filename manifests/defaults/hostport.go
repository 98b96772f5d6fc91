package defaults

import (
	"cmp"
	"iter"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// HostPort is a port of the machine that a container uses.
type HostPort struct {
	Protocol v1.Protocol
	IP       string // "0.0.0.0": every address
	Port     int32
}

const anyIP = "0.0.0.0"

// Overlaps reports whether two host ports conflict.
func (h HostPort) Overlaps(o HostPort) bool {
	return h.Protocol == o.Protocol && h.Port == o.Port && (h.IP == o.IP || h.IP == anyIP || o.IP == anyIP)
}

// HostPorts returns the host ports of the sidecars and regular containers of a pod with defaults,
// each with the path of the container's port, such as spec.containers[0].ports[1].
func HostPorts(s *v1.PodSpec) iter.Seq2[*field.Path, HostPort] {
	return func(yield func(*field.Path, HostPort) bool) {
		for at, c := range Running(s) {
			for i, p := range c.Ports {
				h := HostPort{cmp.Or(p.Protocol, v1.ProtocolTCP), cmp.Or(p.HostIP, anyIP), p.HostPort}
				if p.HostPort > 0 && !yield(at.Child("ports").Index(i), h) {
					return
				}
			}
		}
	}
}

// HostPortField is the field of a container's port in which a wrong host port is reported: with the
// host's network it is the port that the container listens on.
func HostPortField(s *v1.PodSpec) string {
	if s.HostNetwork {
		return "containerPort"
	}
	return "hostPort"
}

// Running returns the containers that run side by side, sidecars and regular ones, each with its
// path.
func Running(s *v1.PodSpec) iter.Seq2[*field.Path, *v1.Container] {
	return func(yield func(*field.Path, *v1.Container) bool) {
		p := field.NewPath("spec")
		for i := range s.InitContainers {
			if IsSidecar(&s.InitContainers[i]) && !yield(p.Child("initContainers").Index(i), &s.InitContainers[i]) {
				return
			}
		}
		for i := range s.Containers {
			if !yield(p.Child("containers").Index(i), &s.Containers[i]) {
				return
			}
		}
	}
}
