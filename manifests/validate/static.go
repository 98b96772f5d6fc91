package validate

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
	"monopod/manifests/defaults"
)

// references refuses references to what exists only with an API server, and those that this version
// cannot resolve.
func (c *checker) references(p *field.Path) {
	s := c.spec
	if s.ServiceAccountName != "" {
		c.refuse(p.Child("serviceAccountName"), "static pods may not reference serviceaccounts")
	}
	if s.DeprecatedServiceAccount != "" {
		c.refuse(p.Child("serviceAccount"), "static pods may not reference serviceaccounts")
	}
	if len(s.ResourceClaims) > 0 {
		c.refuse(p.Child("resourceClaims"), "static pods may not reference resourceclaims")
	}
	if class := s.RuntimeClassName; class != nil && *class != "" {
		if _, ok := c.RuntimeClasses[*class]; !ok {
			c.note(fault{Field: p.Child("runtimeClassName").String(), Message: decode.Message{
				Full:  fmt.Sprintf("runtime class %q is not configured on this node", decode.Clip(*class)),
				Plain: "the runtime class is not configured on this node"}})
		}
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name != "" { // an empty one is ignored, as by the kubelet
			c.objectName(p.Child("imagePullSecrets").Index(i).Child("name"), secret.Name)
		}
	}
}

// inert warns of hooks and probes that are accepted but can only fail.
func (c *checker) inert() {
	for p, ct := range defaults.Running(c.spec) {
		for _, probe := range []struct {
			name string
			*v1.Probe
		}{{"livenessProbe", ct.LivenessProbe}, {"readinessProbe", ct.ReadinessProbe}, {"startupProbe", ct.StartupProbe}} {
			if probe.Probe != nil {
				c.futileHandler(p, p.Child(probe.name), ct, probe.ProbeHandler, "the probe can never be carried out")
			}
		}
		if ct.Lifecycle == nil {
			continue
		}
		for _, hook := range []struct {
			name string
			*v1.LifecycleHandler
		}{{"postStart", ct.Lifecycle.PostStart}, {"preStop", ct.Lifecycle.PreStop}} {
			q := p.Child("lifecycle", hook.name)
			if hook.LifecycleHandler == nil {
				continue
			}
			if hook.TCPSocket != nil {
				c.warn(q.Child("tcpSocket"), "accepted, but no such hook can be run: it always fails")
			}
			c.futileHandler(p, q, ct, v1.ProbeHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet}, "the hook always fails")
		}
	}
}
