// Package admission decides which pods this node has room for.
package admission

import (
	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/agent/node"
	"monopod/agent/podspec"
	"monopod/manifests"
	"monopod/manifests/defaults"
)

// Rejection is why a pod cannot run on this node, in the kubelet's words.
type Rejection struct {
	Reason  string
	Message message.Text
}

// owned is what pods have for themselves of what they request.
type owned struct {
	admit func(*manifests.Pod) *Rejection // checks CPUs and devices
	is    func(resource string) bool      // a resource is one of devices, which admit checks
}

// check returns why the pod cannot run on the node beside the pods in the totals; nil: it can. has
// is what its name has in the totals, and spared what it may have of resources that the node does
// not provide. It changes nothing. The first check that fails gives the result: checks that only
// another manifest passes come before those that may pass later.
func check(p *manifests.Pod, c, has, spared *claims, t *totals, f *node.Facts, o owned) *Rejection {
	checks := []func() *Rejection{
		func() *Rejection { return AdmitOS(p.Pod) },
		func() *Rejection { return admitSysctls(p.Pod, f) },
		func() *Rejection { return admitGroups(p.Pod, f) },
		func() *Rejection { return admitNode(p.Pod, f) },
		func() *Rejection { return o.admit(p) },
		func() *Rejection { return admitPorts(p.Key(), c, t) },
		func() *Rejection { return admitResources(c, has, spared, t, f, o.is) },
		func() *Rejection { return admitAppArmor(p.Pod, f) },
	}
	for _, check := range checks {
		if r := check(); r != nil {
			return r
		}
	}
	return nil
}

// Reasons for pods that require another operating system.
const (
	reasonOS      = "PodOSNotSupported"
	reasonOSLabel = "PodOSSelectorNodeLabelDoesNotMatch"
)

// AdmitOS checks both fields in which a pod requires an operating system.
func AdmitOS(p *v1.Pod) *Rejection {
	if os, ok := p.Labels[v1.LabelOSStable]; ok && os != string(v1.Linux) {
		return &Rejection{reasonOSLabel, message.Of(
			"Failed to admit pod as the `%s` label doesn't match node label: it is %q, and this node runs linux", message.Name(v1.LabelOSStable), message.Name(os))}
	}
	if p.Spec.OS != nil && p.Spec.OS.Name != v1.Linux {
		return &Rejection{reasonOS, message.Of(
			"Failed to admit pod as the OS field doesn't match node OS: spec.os.name is %q, and this node runs linux", message.Name(p.Spec.OS.Name))}
	}
	return nil
}

// Final reports whether only another manifest can pass: no change of the node or of other pods
// helps.
func (r Rejection) Final() bool { return r.Reason == reasonOS || r.Reason == reasonOSLabel }

func admitAppArmor(p *v1.Pod, f *node.Facts) *Rejection {
	if f.AppArmor {
		return nil
	}
	for _, c := range podspec.AllContainers(p) {
		if _, profile := podspec.AppArmor(p, c); profile != "" && profile != v1.DeprecatedAppArmorBetaProfileNameUnconfined {
			return &Rejection{"AppArmor", message.Fixed("Cannot enforce AppArmor: AppArmor is not enabled on the host")}
		}
	}
	return nil
}

// admitGroups refuses a policy on groups that the runtime does not support.
func admitGroups(p *v1.Pod, f *node.Facts) *Rejection {
	policy := podspec.PodSecurity(p).SupplementalGroupsPolicy
	if f.StrictGroups || policy == nil || *policy != v1.SupplementalGroupsPolicyStrict {
		return nil
	}
	why := message.Fixed("SupplementalGroupsPolicy=Strict is not supported in this node")
	if !f.RuntimeAsked {
		why = message.Fixed("SupplementalGroupsPolicy=Strict: the runtime has not answered yet whether it supports this")
	}
	return &Rejection{"SupplementalGroupsPolicyNotSupported", why}
}

// admitPorts refuses a pod that needs a port of another pod. All versions of another pod count: the
// previous one may still listen.
func admitPorts(key manifests.Key, c *claims, t *totals) *Rejection {
	for _, h := range c.ports {
		for _, taken := range t.ports[portNumber{h.Protocol, h.Port}] {
			if taken.key != key && h.Overlaps(defaults.HostPort{Protocol: h.Protocol, IP: taken.ip, Port: h.Port}) {
				return &Rejection{"NodePorts", message.Of(
					"Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: %s has %s port %d",
					message.Name(taken.key.String()), message.Name(h.Protocol), message.Number(h.Port))}
			}
		}
	}
	return nil
}
