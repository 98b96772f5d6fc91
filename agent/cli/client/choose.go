package client

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Choice is the pods that a command is about: the named ones, or all that match; all of them if it
// is empty.
type Choice struct {
	Names     []string // as for FindPod
	Namespace string   // "" is all
	Selector  string   // of labels, such as app=web,tier!=db
}

// Any reports whether the choice has any condition.
func (c Choice) Any() bool { return len(c.Names) > 0 || c.Namespace != "" || c.Selector != "" }

// None returns the sentence for a choice without pods; "" for an empty choice.
func (c Choice) None() string {
	switch {
	case c.Selector == "" && c.Namespace == "":
		return ""
	case c.Selector == "":
		return fmt.Sprintf("No pods in namespace %s.", c.Namespace)
	case c.Namespace == "":
		return "No pods match."
	}
	return fmt.Sprintf("No pods in namespace %s match.", c.Namespace)
}

// Plain returns the choice without the word for pods that other tools require before their names,
// unless a pod has that name.
func (c Choice) Plain(all []v1.Pod) Choice {
	if len(c.Names) > 0 && isKind(all, c.Names[0]) {
		c.Names = c.Names[1:]
	}
	return c
}

// Check rejects an impossible choice, with one sentence.
func (c Choice) Check() error {
	if _, err := labels.Parse(c.Selector); err != nil {
		return fmt.Errorf("-l: %q is no selector such as app=web,tier!=db", c.Selector)
	}
	if len(c.Names) > 0 && c.Selector != "" {
		return fmt.Errorf("name pods or select them by labels, not both: %q and -l %s", c.Names[0], c.Selector)
	}
	return nil
}

// Of returns the pods of the choice, in the order of all, and an error if no pod has one of the
// names.
func (c Choice) Of(all []v1.Pod) ([]v1.Pod, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = c.Plain(all)
	if len(c.Names) == 0 {
		return c.Matching(all), nil
	}
	chosen := map[*v1.Pod]bool{}
	for _, name := range c.Names {
		p, err := FindPod(all, name, c.Namespace)
		if err != nil {
			return nil, err
		}
		chosen[p] = true
	}
	var out []v1.Pod
	for i := range all {
		if chosen[&all[i]] {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// Matching returns the pods in the namespace that the selector matches.
func (c Choice) Matching(all []v1.Pod) []v1.Pod {
	s, err := labels.Parse(c.Selector)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(p v1.Pod) bool {
		return c.Namespace != "" && p.Namespace != c.Namespace || !s.Matches(labels.Set(p.Labels))
	})
}
