package validate

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Names of the two lists that each kind of affinity has.
const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

// affinity checks the node and pod affinity. On a single machine only the required node affinity
// has an effect.
func (c *checker) affinity(p *field.Path) {
	a := c.spec.Affinity
	if a == nil {
		return
	}
	if n := a.NodeAffinity; n != nil {
		c.nodeAffinity(p.Child("nodeAffinity"), n)
	}
	if n := a.PodAffinity; n != nil {
		c.podTerms(p.Child("podAffinity"), n.RequiredDuringSchedulingIgnoredDuringExecution, n.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if n := a.PodAntiAffinity; n != nil {
		c.podTerms(p.Child("podAntiAffinity"), n.RequiredDuringSchedulingIgnoredDuringExecution, n.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (c *checker) nodeAffinity(p *field.Path, a *v1.NodeAffinity) {
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		q := p.Child(requiredTerms, "nodeSelectorTerms")
		c.required(len(r.NodeSelectorTerms) > 0, q, "must have at least one node selector term")
		for i := range r.NodeSelectorTerms {
			c.nodeTerm(q.Index(i), &r.NodeSelectorTerms[i])
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		t, q := &a.PreferredDuringSchedulingIgnoredDuringExecution[i], p.Child(preferredTerms).Index(i)
		c.weight(q, t.Weight)
		c.nodeTerm(q.Child("preference"), &t.Preference)
	}
}

func (c *checker) weight(p *field.Path, weight int32) {
	if weight < 1 || weight > 100 {
		c.add(field.Invalid(p.Child("weight"), weight, "must be in the range 1-100"))
	}
}

// nodeTerm checks one term; an empty one is allowed, and matches no node.
func (c *checker) nodeTerm(p *field.Path, t *v1.NodeSelectorTerm) {
	for i := range t.MatchExpressions {
		c.nodeLabel(p.Child("matchExpressions").Index(i), &t.MatchExpressions[i])
	}
	for i := range t.MatchFields {
		c.nodeField(p.Child("matchFields").Index(i), &t.MatchFields[i])
	}
}

// nodeLabel checks a requirement of a node's label.
func (c *checker) nodeLabel(p *field.Path, r *v1.NodeSelectorRequirement) {
	c.labelName(p.Child("key"), r.Key)
	q := p.Child("values")
	switch r.Operator {
	case v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn:
		c.required(len(r.Values) > 0, q, "must be specified when `operator` is 'In' or 'NotIn'")
	case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
		c.forbid(len(r.Values) > 0, q, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		c.required(len(r.Values) == 1, q, "must be specified single value when `operator` is 'Lt' or 'Gt'")
	default:
		c.add(field.Invalid(p.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	for i, v := range r.Values {
		c.invalid(q.Index(i), v, validation.IsValidLabelValue(v))
	}
}

// nodeField checks a requirement of a node's field: only its name is supported.
func (c *checker) nodeField(p *field.Path, r *v1.NodeSelectorRequirement) {
	q := p.Child("values")
	if r.Operator == v1.NodeSelectorOpIn || r.Operator == v1.NodeSelectorOpNotIn {
		c.required(len(r.Values) == 1, q, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
	} else {
		c.add(field.Invalid(p.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	if r.Key != metav1.ObjectNameField {
		c.add(field.Invalid(p.Child("key"), r.Key, "not a valid field selector key"))
		return
	}
	for i, v := range r.Values {
		c.invalid(q.Index(i), v, validation.IsDNS1123Subdomain(v))
	}
}

// podTerms checks the terms of pod affinity or anti-affinity.
func (c *checker) podTerms(p *field.Path, required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm) {
	for i := range required {
		c.podTerm(p.Child(requiredTerms).Index(i), &required[i])
	}
	for i := range preferred {
		q := p.Child(preferredTerms).Index(i)
		c.weight(q, preferred[i].Weight)
		c.podTerm(q.Child("podAffinityTerm"), &preferred[i].PodAffinityTerm)
	}
}

func (c *checker) podTerm(p *field.Path, t *v1.PodAffinityTerm) {
	c.selector(p.Child("labelSelector"), t.LabelSelector)
	c.selector(p.Child("namespaceSelector"), t.NamespaceSelector)
	for i, ns := range t.Namespaces {
		c.invalid(p.Child("namespaces").Index(i), ns, validation.IsDNS1123Label(ns))
	}
	c.topologyKey(p.Child("topologyKey"), t.TopologyKey)
	c.labelKeys(p, "matchLabelKeys", t.MatchLabelKeys, t.LabelSelector)
	c.labelKeys(p, "mismatchLabelKeys", t.MismatchLabelKeys, t.LabelSelector)
	not := map[string]bool{}
	for _, key := range t.MismatchLabelKeys {
		not[key] = true
	}
	for i, key := range t.MatchLabelKeys {
		if not[key] {
			c.add(field.Invalid(p.Child("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys"))
		}
	}
}
