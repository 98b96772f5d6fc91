package manifests

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// order checks the annotations that order pods.
func (c *checker) order(p *field.Path) {
	after, ok := c.pod.Annotations[StartAfter]
	timeout, limited := c.pod.Annotations[StartAfterTimeout]
	if limited {
		if _, err := orderTimeout(timeout); err != nil {
			c.add(field.Invalid(p.Key(StartAfterTimeout), clip(timeout), err.Error()))
		}
		if !ok {
			c.warn(p.Key(StartAfterTimeout), "has no effect without "+StartAfter)
		}
	}
	if !ok || len(after) > maxAnnotations { // which is said of all annotations
		return
	}
	seen := map[string]bool{}
	for _, name := range strings.Split(after, ",") {
		if strings.TrimSpace(name) == "" {
			c.add(field.Invalid(p.Key(StartAfter), clip(after), "must name pods, separated by commas: name, or namespace/name"))
			continue
		}
		key, bad := podRef(c.pod.Namespace, name)
		c.invalid(p.Key(StartAfter), clip(strings.TrimSpace(name)), bad)
		unique(c, seen, p.Key(StartAfter), key.String())
	}
}
