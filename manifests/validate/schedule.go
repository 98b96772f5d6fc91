package validate

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// schedule checks the fields that a scheduler uses. Most have no effect on one
// node, but a kubelet refuses invalid ones.
func (c *checker) schedule(p *field.Path) {
	s := c.spec
	for k, v := range s.NodeSelector {
		q := p.Child("nodeSelector").Key(k)
		c.invalid(q, k, validation.IsQualifiedName(k))
		c.invalid(q, v, validation.IsValidLabelValue(v))
	}
	for i := range s.Tolerations {
		c.toleration(p.Child("tolerations").Index(i), &s.Tolerations[i])
	}
	c.affinity(p.Child("affinity"))
	c.spread(p.Child("topologySpreadConstraints"))
	if s.PriorityClassName != "" {
		c.invalid(p.Child("priorityClassName"), s.PriorityClassName, validation.IsDNS1123Subdomain(s.PriorityClassName))
	}
	for _, name := range names(s.Overhead) {
		q := p.Child("overhead").Key(string(name))
		c.resourceName(q, name)
		c.amount(q, name, s.Overhead[name])
	}
}

func (c *checker) toleration(p *field.Path, t *v1.Toleration) {
	op := p.Child("operator")
	if t.Key != "" {
		c.labelName(p.Child("key"), t.Key)
	} else if t.Operator != v1.TolerationOpExists && c.read(p.Child("key")) {
		c.add(field.Invalid(op, t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.TolerationSeconds != nil && t.Effect != v1.TaintEffectNoExecute {
		c.add(field.Invalid(p.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch t.Operator {
	case v1.TolerationOpEqual, "":
		c.invalid(p.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))
	case v1.TolerationOpExists:
		if t.Value != "" {
			c.add(field.Invalid(p.Child("value"), t.Value, "value must be empty when `operator` is 'Exists'"))
		}
	case v1.TolerationOpLt, v1.TolerationOpGt:
		if _, err := strconv.ParseInt(t.Value, 10, 64); err != nil {
			c.add(field.Invalid(p.Child("value"), t.Value, "value must be an integer when `operator` is 'Lt' or 'Gt'"))
		}
	default:
		oneOf(c, op, t.Operator, v1.TolerationOpEqual, v1.TolerationOpExists, v1.TolerationOpLt, v1.TolerationOpGt)
	}
	if t.Effect != "" {
		oneOf(c, p.Child("effect"), t.Effect, v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute)
	}
}

// spread checks the topology spread constraints.
func (c *checker) spread(p *field.Path) {
	seen := map[string]bool{}
	for i := range c.spec.TopologySpreadConstraints {
		t, q := &c.spec.TopologySpreadConstraints[i], p.Index(i)
		if t.MaxSkew <= 0 {
			c.add(field.Invalid(q.Child("maxSkew"), t.MaxSkew, "must be greater than zero"))
		}
		c.topologyKey(q.Child("topologyKey"), t.TopologyKey)
		oneOf(c, q.Child("whenUnsatisfiable"), t.WhenUnsatisfiable, v1.DoNotSchedule, v1.ScheduleAnyway)
		unique(c, seen, q.Child("{topologyKey, whenUnsatisfiable}"), "{"+t.TopologyKey+", "+string(t.WhenUnsatisfiable)+"}")
		if d := t.MinDomains; d != nil {
			if *d <= 0 {
				c.add(field.Invalid(q.Child("minDomains"), *d, "must be greater than zero"))
			}
			if t.WhenUnsatisfiable != v1.DoNotSchedule && c.read(q.Child("whenUnsatisfiable")) {
				c.addQuoting(field.Invalid(q.Child("minDomains"), *d, "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "+string(t.WhenUnsatisfiable)))
			}
		}
		for name, policy := range map[string]*v1.NodeInclusionPolicy{"nodeAffinityPolicy": t.NodeAffinityPolicy, "nodeTaintsPolicy": t.NodeTaintsPolicy} {
			if policy != nil {
				oneOf(c, q.Child(name), *policy, v1.NodeInclusionPolicyIgnore, v1.NodeInclusionPolicyHonor)
			}
		}
		c.labelKeys(q, "matchLabelKeys", t.MatchLabelKeys, t.LabelSelector)
		c.selector(q.Child("labelSelector"), t.LabelSelector)
	}
}

// topologyKey checks the label that defines a topology.
func (c *checker) topologyKey(p *field.Path, key string) {
	if c.required(key != "", p, "can not be empty") {
		c.labelName(p, key)
	}
}

func (c *checker) labelName(p *field.Path, name string) {
	c.invalid(p, name, validation.IsQualifiedName(name))
}

// selector checks a label selector; nil is one.
func (c *checker) selector(p *field.Path, s *metav1.LabelSelector) {
	c.add(metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, p)...)
}

// labelKeys checks keys of labels whose values are taken from the pod itself. of is the term that
// contains them and the selector.
func (c *checker) labelKeys(of *field.Path, name string, keys []string, s *metav1.LabelSelector) {
	p := of.Child(name)
	c.forbid(len(keys) > 0 && s == nil && c.read(of.Child("labelSelector")), p,
		"must not be specified when labelSelector is not set")
	for i, key := range keys {
		c.labelName(p.Index(i), key)
	}
}
