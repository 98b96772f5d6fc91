package validate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
	"monopod/manifests/defaults"
)

// references refuses what a pod without an API server cannot refer to, and
// what this version cannot look up.
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
			c.refuse(p.Child("runtimeClassName"), "runtime class %q is not configured on this node", decode.Clip(*class))
		}
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name != "" {
			c.refuse(p.Child("imagePullSecrets").Index(i), "Secret references are not supported yet")
		}
	}
}

// inert warns of fields that are accepted but have no effect.
func (c *checker) inert(p *field.Path) {
	for i := range c.spec.InitContainers {
		if ct := &c.spec.InitContainers[i]; defaults.IsSidecar(ct) {
			c.inertContainer(p.Child("initContainers").Index(i), ct)
		}
	}
	for i := range c.spec.Containers {
		c.inertContainer(p.Child("containers").Index(i), &c.spec.Containers[i])
	}
}

func (c *checker) inertContainer(p *field.Path, ct *v1.Container) {
	if ct.Lifecycle == nil {
		return
	}
	for _, hook := range []struct {
		name    string
		handler *v1.LifecycleHandler
	}{{"postStart", ct.Lifecycle.PostStart}, {"preStop", ct.Lifecycle.PreStop}} {
		if hook.handler != nil && hook.handler.TCPSocket != nil {
			c.warn(p.Child("lifecycle", hook.name, "tcpSocket"), "accepted, but no such hook can be run: it always fails")
		}
	}
}
