package admission

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"monopod/agent/message"
	"monopod/agent/node"
)

// admitNode refuses a pod whose node selector or required node affinity does not match this node.
func admitNode(p *v1.Pod, f *node.Facts) *Rejection {
	if selectsNode(p.Spec.NodeSelector, f.Labels) && affine(p, f.Labels) {
		return nil
	}
	return &Rejection{"NodeAffinity", message.Fixed("Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")}
}

func selectsNode(selector, node map[string]string) bool {
	for key, value := range selector {
		if has, ok := node[key]; !ok || has != value {
			return false
		}
	}
	return true
}

// affine reports whether one of the required terms, if there are any, matches the node.
func affine(p *v1.Pod, node map[string]string) bool {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(t v1.NodeSelectorTerm) bool { return termFits(t, p.Spec.NodeName, node) })
}

// termFits reports whether the node meets all requirements of a term. An empty or invalid term
// matches no node.
func termFits(t v1.NodeSelectorTerm, name string, node map[string]string) bool {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false
	}
	fits := func(all []v1.NodeSelectorRequirement, in map[string]string) bool {
		return !slices.ContainsFunc(all, func(r v1.NodeSelectorRequirement) bool { return !requirementFits(r, in) })
	}
	for _, field := range t.MatchFields {
		if field.Key != "metadata.name" || len(field.Values) != 1 ||
			field.Operator != v1.NodeSelectorOpIn && field.Operator != v1.NodeSelectorOpNotIn {
			return false
		}
	}
	return fits(t.MatchExpressions, node) && fits(t.MatchFields, map[string]string{"metadata.name": name})
}

func requirementFits(r v1.NodeSelectorRequirement, in map[string]string) bool {
	operators := map[v1.NodeSelectorOperator]selection.Operator{
		v1.NodeSelectorOpIn: selection.In, v1.NodeSelectorOpNotIn: selection.NotIn,
		v1.NodeSelectorOpExists: selection.Exists, v1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
		v1.NodeSelectorOpGt: selection.GreaterThan, v1.NodeSelectorOpLt: selection.LessThan,
	}
	op, ok := operators[r.Operator]
	if !ok {
		return false
	}
	q, err := labels.NewRequirement(r.Key, op, r.Values)
	return err == nil && q.Matches(labels.Set(in))
}
