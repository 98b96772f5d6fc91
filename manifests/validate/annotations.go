package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
)

// annotations checks those that are monopod's: each is known, says what it may say, and
// stands where it counts.
func (c *checker) annotations(p *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(c.pod.Annotations)) {
		c.annotation(p.Key(name), name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.pod.Labels)) {
		if _, known := decode.AnnotationNamed(name); known {
			c.warn(field.NewPath("metadata", "labels").Key(name), "has no effect as a label: write it below annotations")
		}
	}
	if text, said := c.pod.Annotations[decode.AnnotationRestart]; said && text != "true" && text != "false" {
		c.addLately(p.Key(decode.AnnotationRestart), decode.Invalid(field.Invalid(nil, decode.Clip(text), mustBe(decode.AnnotationRestart))))
	}
	c.backOff(p)
	c.order(p)
	c.update(p)
}

// annotation checks the name of one. Those of other programs are theirs.
func (c *checker) annotation(p *field.Path, name string) {
	a, known := decode.AnnotationNamed(name)
	meant, misspelt := decode.Misspelt(name)
	switch {
	case known && a.On != decode.InManifests:
		c.warn(p, "has no effect in a manifest: monopod itself sets it on "+a.On)
	case known:
	case decode.MeansMonopod(name):
		c.addLately(p, unknownAnnotation(name, decode.MeantAnnotation(name)))
	case misspelt:
		c.warnQuoting(p, unknownAnnotation(name, meant))
	}
}

// unknownAnnotation is said of a name that is none, but looks like one of monopod's; near is
// the annotation that is meant most likely, "" if none is.
func unknownAnnotation(name, near string) decode.Message {
	meant := "; `monopod man` lists them"
	if near != "" {
		meant = fmt.Sprintf(": did you mean %q?", near)
	}
	return decode.Message{Full: fmt.Sprintf("unknown annotation %q%s", decode.Clip(name), meant), Plain: "unknown annotation" + meant}
}

// mustBe says what an annotation may say.
func mustBe(name string) string {
	a, _ := decode.AnnotationNamed(name)
	return "must be " + a.Values
}

// backOff checks the annotations about it.
func (c *checker) backOff(p *field.Path) {
	for _, name := range []string{decode.AnnotationBackOffFirst, decode.AnnotationBackOffMax} {
		if _, ok := decode.ParseBackOff(c.pod, name); !ok {
			c.add(field.Invalid(p.Key(name), c.pod.Annotations[name], mustBe(name)))
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
		if _, ok := decode.OrderTimeout(timeout); !ok {
			c.add(field.Invalid(p.Key(decode.StartAfterTimeout), timeout, mustBe(decode.StartAfterTimeout)))
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
			c.add(field.Invalid(p.Key(decode.StartAfter), after, mustBe(decode.StartAfter)))
			continue
		}
		key, bad := decode.PodReference(c.pod.Namespace, name)
		c.invalid(p.Key(decode.StartAfter), strings.TrimSpace(name), bad)
		unique(c, seen, p.Key(decode.StartAfter), key.String())
	}
}

// update checks the annotations about it.
func (c *checker) update(p *field.Path) {
	if _, good := decode.Update(c.pod); !good {
		c.add(field.NotSupported(p.Key(decode.AnnotationUpdate), c.pod.Annotations[decode.AnnotationUpdate],
			[]string{decode.UpdatePrepare, decode.UpdateStopFirst, decode.UpdateInPlace, decode.UpdateReplace}))
	}
	if _, _, good := decode.UpdateHealth(c.pod); !good {
		c.add(field.Invalid(p.Key(decode.AnnotationUpdateHealth), c.pod.Annotations[decode.AnnotationUpdateHealth], mustBe(decode.AnnotationUpdateHealth)))
	}
	if file, ok := c.pod.Annotations[decode.AnnotationUpdateLock]; ok {
		if _, _, ok := decode.UpdateLock(c.pod, file); !ok {
			c.add(field.Invalid(p.Key(decode.AnnotationUpdateLock), file, mustBe(decode.AnnotationUpdateLock)))
		}
	}
}
