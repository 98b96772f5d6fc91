package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/annotations"
	"monopod/manifests/decode"
	"monopod/manifests/devicename"
	"monopod/manifests/imagename"
)

// annotations checks monopod's own annotations: their names, their values, and whether they have an
// effect on a pod.
func (c *checker) annotations(p *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(c.pod.Annotations)) {
		c.annotation(p.Key(name), name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.pod.Labels)) {
		if _, known := annotations.Named(name); known {
			c.warn(field.NewPath("metadata", "labels").Key(name), "has no effect as a label: write it below annotations")
		}
	}
	c.reactions(p)
	c.backOff(p)
	c.order(p)
	c.update(p)
	c.job(p.Key(annotations.Job))
	c.cdi(p)
}

// reactions checks what happens to containers when their objects change.
func (c *checker) reactions(p *field.Path) {
	text, isShort := c.pod.Annotations[annotations.RestartOnConfigChange]
	if isShort && text != "true" && text != "false" {
		c.addLately(p.Key(annotations.RestartOnConfigChange), decode.Invalid(field.Invalid(nil, decode.Clip(text), mustBe(annotations.RestartOnConfigChange))))
	}
	for _, name := range slices.Sorted(maps.Keys(c.pod.Annotations)) {
		rest, is := strings.CutPrefix(name, annotations.OnConfigChange)
		container, ofOne := strings.CutPrefix(rest, "/")
		if !is || rest != "" && !ofOne {
			continue
		}
		if _, err := annotations.ParseReaction(c.pod.Annotations[name]); err != nil {
			c.add(field.Invalid(p.Key(name), c.pod.Annotations[name], "must be "+err.Error()))
		}
		switch {
		case ofOne && !c.runsOn(container):
			c.add(field.Invalid(p.Key(name), container, "must be the name of a container that runs as long as the pod: one of spec.containers, or an init container with restartPolicy Always"))
		case !ofOne && isShort:
			c.add(field.Forbidden(p.Key(name), "may not be set beside "+annotations.RestartOnConfigChange+", which is its short form: leave one of them out"))
		}
	}
}

// runsOn reports whether the pod has a container of this name that runs as long as the pod.
func (c *checker) runsOn(name string) bool {
	isNamed := func(c v1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(c.pod.Spec.Containers, isNamed) ||
		slices.ContainsFunc(c.pod.Spec.InitContainers, func(c v1.Container) bool {
			return isNamed(c) && c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		})
}

// cdi checks the names of the CDI devices that annotations give to the pod's containers.
func (c *checker) cdi(p *field.Path) {
	all := devicename.Annotated(c.pod.Annotations)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		for _, name := range all[key] {
			if err := devicename.CheckCDI(name); err != nil {
				c.addLately(p.Key(key), decode.Invalid(field.Invalid(nil, decode.Clip(name), err.Error()+"; several have commas between, without spaces")))
				break
			}
		}
	}
}

// annotation checks the name of one annotation. Those of other programs are not checked.
func (c *checker) annotation(p *field.Path, name string) {
	a, known := annotations.Named(name)
	meant, misspelt := annotations.Misspelt(name, annotations.InManifests)
	switch {
	case known && a.On == annotations.OnLists:
		c.warn(p, "has no effect on a pod: it belongs to the List that a manifest URL gives")
	case known && a.On != annotations.InManifests:
		c.warn(p, "has no effect in a manifest: monopod itself sets it on "+a.On)
	case known:
	case annotations.MeansMonopod(name):
		c.addLately(p, unknownAnnotation(name, annotations.Meant(name, annotations.InManifests)))
	case misspelt:
		c.warnQuoting(p, unknownAnnotation(name, meant))
	}
}

// unknownAnnotation is the message for an unknown name that looks like one of monopod's; near is
// the most likely annotation, "" if there is none.
func unknownAnnotation(name, near string) decode.Message {
	meant := "; `monopod man` lists them"
	if near != "" {
		meant = fmt.Sprintf(": did you mean %q?", near)
	}
	return decode.Message{Full: fmt.Sprintf("unknown annotation %q%s", decode.Clip(name), meant), Plain: "unknown annotation" + meant}
}

// mustBe returns a description of an annotation's values.
func mustBe(name string) string {
	a, _ := annotations.Named(name)
	return "must be " + a.Values
}

// backOff checks the annotations of the back-off.
func (c *checker) backOff(p *field.Path) {
	for _, name := range []string{annotations.BackOffFirst, annotations.BackOffMax} {
		if _, ok := annotations.ParseBackOff(c.pod, name); !ok {
			c.add(field.Invalid(p.Key(name), c.pod.Annotations[name], mustBe(name)))
		}
	}
	if first, most := annotations.BackOffOf(c.pod); most > 0 && first > most {
		c.add(field.Invalid(p.Key(annotations.BackOffFirst), c.pod.Annotations[annotations.BackOffFirst], "must not be longer than "+annotations.BackOffMax))
	}
}

// order checks the annotations that order pods.
func (c *checker) order(p *field.Path) {
	after, ok := c.pod.Annotations[annotations.StartAfter]
	timeout, limited := c.pod.Annotations[annotations.StartAfterTimeout]
	if limited {
		if _, ok := annotations.OrderTimeout(timeout); !ok {
			c.add(field.Invalid(p.Key(annotations.StartAfterTimeout), timeout, mustBe(annotations.StartAfterTimeout)))
		}
		if !ok {
			c.warn(p.Key(annotations.StartAfterTimeout), "has no effect without "+annotations.StartAfter)
		}
	}
	if !ok || len(after) > maxAnnotations { // their size is reported for all annotations together
		return
	}
	names := strings.Split(after, ",")
	if slices.ContainsFunc(names, func(name string) bool { return strings.TrimSpace(name) == "" }) {
		c.add(field.Invalid(p.Key(annotations.StartAfter), decode.Clip(after), mustBe(annotations.StartAfter)))
		return
	}
	times := map[string]int{}
	for _, name := range names {
		key, bad := annotations.PodReference(c.pod.Namespace, name)
		times[key.String()]++
		switch times[key.String()] {
		case 1:
			c.invalid(p.Key(annotations.StartAfter), strings.TrimSpace(name), bad)
		case 2:
			c.add(field.Duplicate(p.Key(annotations.StartAfter), key.String()))
		}
	}
}

// update checks the annotations of updates.
func (c *checker) update(p *field.Path) {
	if _, good := annotations.UpdateOf(c.pod); !good {
		c.add(field.NotSupported(p.Key(annotations.Update), c.pod.Annotations[annotations.Update],
			[]string{annotations.UpdatePrepare, annotations.UpdateStopFirst, annotations.UpdateInPlace, annotations.UpdateReplace}))
	}
	if _, _, good := annotations.UpdateHealthOf(c.pod); !good {
		c.add(field.Invalid(p.Key(annotations.UpdateHealth), c.pod.Annotations[annotations.UpdateHealth], mustBe(annotations.UpdateHealth)))
	}
	c.follow(p.Key(annotations.FollowImages))
	if file, ok := c.pod.Annotations[annotations.UpdateLock]; ok {
		if _, _, ok := annotations.LockIn(c.pod, file); !ok {
			c.add(field.Invalid(p.Key(annotations.UpdateLock), file, mustBe(annotations.UpdateLock)))
		}
	}
}

// job checks the annotation that monopod sets on the pod of a Job; a manifest that was written from
// such a pod has it, too.
func (c *checker) job(p *field.Path) {
	text, there := c.pod.Annotations[annotations.Job]
	if _, ok := annotations.JobRetriesOf(c.pod); there && !ok {
		c.addLately(p, decode.Invalid(field.Invalid(nil, decode.Clip(text), "must be Never or OnFailure, a slash and a number, such as Never/6, on a pod with restartPolicy OnFailure")))
	}
}

// follow checks the annotation of pods that follow tags.
func (c *checker) follow(p *field.Path) {
	every, _, good := annotations.FollowOf(c.pod)
	switch policy := c.pod.Spec.RestartPolicy; {
	case !good:
		c.add(field.Invalid(p, c.pod.Annotations[annotations.FollowImages], mustBe(annotations.FollowImages)))
	case every == 0:
	case policy == v1.RestartPolicyNever || policy == v1.RestartPolicyOnFailure:
		c.warn(p, "has no effect on a pod that runs to completion: its restartPolicy is "+string(policy))
	case !slices.ContainsFunc(annotations.ImageNames(c.pod), imagename.HasTag):
		c.warn(p, "has no effect: all images of the pod are given by digest, which never move")
	}
}
