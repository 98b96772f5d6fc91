package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
)

// backOff checks the annotations about it.
func (c *checker) backOff(p *field.Path) {
	for _, name := range []string{decode.AnnotationBackOffFirst, decode.AnnotationBackOffMax} {
		if _, ok := decode.ParseBackOff(c.pod, name); !ok {
			c.add(field.Invalid(p.Key(name), c.pod.Annotations[name], "must be a duration from 100ms to 24h, such as 10s or 5m"))
		}
	}
	if first, most := decode.BackOff(c.pod); most > 0 && first > most {
		c.add(field.Invalid(p.Key(decode.AnnotationBackOffFirst), c.pod.Annotations[decode.AnnotationBackOffFirst], "must not be longer than "+decode.AnnotationBackOffMax))
	}
}

// order checks the annotations that order pods.
func (c *checker) order(p *field.Path) {
	after, ok := c.pod.Annotations[decode.StartAfter]
	timeout, limited := c.pod.Annotations[decode.StartAfterTimeout]
	if limited {
		if _, err := decode.OrderTimeout(timeout); err != nil {
			c.add(field.Invalid(p.Key(decode.StartAfterTimeout), timeout, err.Error()))
		}
		if !ok {
			c.warn(p.Key(decode.StartAfterTimeout), "has no effect without "+decode.StartAfter)
		}
	}
	if !ok || len(after) > maxAnnotations { // which is said of all annotations
		return
	}
	seen := map[string]bool{}
	for _, name := range strings.Split(after, ",") {
		if strings.TrimSpace(name) == "" {
			c.add(field.Invalid(p.Key(decode.StartAfter), after, "must name pods, separated by commas: name, or namespace/name"))
			continue
		}
		key, bad := decode.PodReference(c.pod.Namespace, name)
		c.invalid(p.Key(decode.StartAfter), strings.TrimSpace(name), bad)
		unique(c, seen, p.Key(decode.StartAfter), key.String())
	}
}

// update checks the annotations about it.
func (c *checker) update(p *field.Path) {
	if text, ok := c.pod.Annotations[decode.AnnotationUpdate]; ok && text != decode.UpdatePrepare && text != decode.UpdateStopFirst {
		c.add(field.NotSupported(p.Key(decode.AnnotationUpdate), text, []string{decode.UpdatePrepare, decode.UpdateStopFirst}))
	}
	if _, _, good := decode.UpdateHealth(c.pod); !good {
		c.add(field.Invalid(p.Key(decode.AnnotationUpdateHealth), c.pod.Annotations[decode.AnnotationUpdateHealth], "must be a duration from 1s to 24h, such as 30s, or 0s for no limit"))
	}
	if file, ok := c.pod.Annotations[decode.AnnotationUpdateLock]; ok {
		if _, _, ok := decode.UpdateLock(c.pod, file); !ok {
			c.add(field.Invalid(p.Key(decode.AnnotationUpdateLock), file, "must be the absolute path of a file below the mountPath of an emptyDir volume"))
		}
	}
}
