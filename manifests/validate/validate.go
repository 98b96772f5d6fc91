// Package validate checks a pod as the API server does, and for what a static pod cannot do.
package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
	"monopod/manifests/poduid"
)

// fault is an error or warning about a pod, at a field of its manifest.
type fault struct {
	Field   string
	Message decode.Message
	Warning bool
	// Lately is set for an error that former versions of monopod accepted, so that a running pod
	// may have it.
	Lately bool
}

// severity is how grave a fault is, by the fault's fields of these names.
type severity struct{ warning, lately bool }

// checker collects all faults of one pod, not only the first. Its rules are those of Kubernetes'
// validation.
type checker struct {
	Given
	pod    *v1.Pod
	spec   *v1.PodSpec
	faults []fault
	counts map[severity]int // of the faults

	volumesRead func() bool // whether the names of all volumes could be read; asked once, as containers have many mounts
}

// Given is the input of the checks beside the pod.
type Given struct {
	RuntimeClasses map[string]string // the existing ones; the values are not used
	NodeName       string            // as the manifest has it; in the pod it is this node's name
	// Misread reports whether a field, its parent or a part of it could not be read: then errors
	// that follow from its value are not reported.
	Misread func(field string) bool
}

// Pod returns everything wrong with a pod that has its defaults and its identity, and a warning for
// each field that has no effect or can only fail.
func Pod(pod *v1.Pod, g Given) []fault {
	c := &checker{Given: g, pod: pod, spec: &pod.Spec, counts: map[severity]int{}}
	spec := field.NewPath("spec")
	c.volumesRead = sync.OnceValue(func() bool { return c.readEach(spec.Child("volumes"), len(c.spec.Volumes), "name") })
	c.metadata(field.NewPath("metadata"))
	c.annotations(field.NewPath("metadata", "annotations"))
	c.podSpec(spec)
	c.volumes(spec.Child("volumes"))
	c.madeFiles()
	c.containers(spec)
	c.podSecurity(spec)
	c.network(spec)
	c.podResources(spec)
	c.schedule(spec)
	c.references(spec)
	c.inert()
	c.hostPorts()
	return c.faults
}

// add appends errors whose details are fixed words; it skips nil. A long value is quoted up to a
// limit.
func (c *checker) add(errs ...*field.Error) {
	for _, e := range errs {
		if e != nil {
			clipped(e)
			c.note(fault{Field: e.Field, Message: decode.Invalid(e)})
		}
	}
}

// addQuoting adds an error whose detail quotes the manifest, too.
func (c *checker) addQuoting(e *field.Error) {
	clipped(e)
	full := e.ErrorBody()
	e.Detail = ""
	c.note(fault{Field: e.Field, Message: decode.Message{Full: full, Plain: decode.Invalid(e).Plain}})
}

// addLately adds an error that former versions of monopod accepted.
func (c *checker) addLately(p *field.Path, m decode.Message) {
	c.note(fault{Field: p.String(), Message: m, Lately: true})
}

// clipped shortens an error.
func clipped(e *field.Error) {
	if v := reflect.ValueOf(e.BadValue); v.Kind() == reflect.String {
		e.BadValue = decode.Clip(v.String())
	}
	e.Detail = withoutPattern(e.Detail)
}

// note adds a fault, unless its field could not be read or there are too many of its kind already: neither
// warnings nor what a version that runs may have hide an error.
func (c *checker) note(f fault) {
	of := severity{f.Warning, f.Lately}
	if c.counts[of] < decode.MaxProblems && !c.Misread(f.Field) {
		c.faults = append(c.faults, f)
		c.counts[of]++
	}
}

// refuse adds an error of monopod's own, or for any static pod. The words quote nothing of the
// manifest.
func (c *checker) refuse(p *field.Path, words string) {
	c.note(fault{Field: p.String(), Message: decode.Fixed(words)})
}

// read reports whether all of the fields could be read, so that their values are meaningful.
func (c *checker) read(fields ...*field.Path) bool {
	return !slices.ContainsFunc(fields, func(p *field.Path) bool { return c.Misread(p.String()) })
}

// readEach is read for a field in each of the n items of a list.
func (c *checker) readEach(list *field.Path, n int, name string) bool {
	for i := range n {
		if !c.read(list.Index(i).Child(name)) {
			return false
		}
	}
	return n > 0 || c.read(list)
}

// readContainers is read for a field in each container.
func (c *checker) readContainers(name string) bool {
	spec := field.NewPath("spec")
	return c.readEach(spec.Child("initContainers"), len(c.spec.InitContainers), name) &&
		c.readEach(spec.Child("containers"), len(c.spec.Containers), name)
}

// faulty reports whether a field has an error.
func (c *checker) faulty(p *field.Path) bool {
	return slices.ContainsFunc(c.faults, func(f fault) bool { return f.Field == p.String() && !f.Warning })
}

// warn adds a warning, once, about a field that is accepted but has no effect or can only fail. The
// words quote nothing of the manifest.
func (c *checker) warn(p *field.Path, words string) { c.warnQuoting(p, decode.Fixed(words)) }

// warnQuoting is warn with a message that may quote the manifest.
func (c *checker) warnQuoting(p *field.Path, m decode.Message) {
	if f := (fault{Field: p.String(), Message: m, Warning: true}); !slices.Contains(c.faults, f) {
		c.note(f)
	}
}

// forbid adds an error if a forbidden combination is set.
func (c *checker) forbid(when bool, p *field.Path, text string) {
	if when {
		c.add(field.Forbidden(p, text))
	}
}

// invalid adds the errors of one of apimachinery's tests for a value.
func (c *checker) invalid(p *field.Path, value any, faults []string) {
	for _, text := range faults {
		c.add(field.Invalid(p, value, withoutPattern(text)))
	}
}

// withoutPattern removes the regular expression that apimachinery appends to a sentence with the
// same meaning.
func withoutPattern(text string) string {
	if before, _, ok := strings.Cut(text, ", regex used for validation"); ok {
		return before + ")"
	}
	before, _, _ := strings.Cut(text, " (regex used for validation")
	return before
}

// required adds an error if a value is missing, and returns there.
func (c *checker) required(there bool, p *field.Path, text string) bool {
	if !there {
		c.add(field.Required(p, text))
	}
	return there
}

// within adds an error if a number is out of bounds.
func within[N int | int32 | int64](c *checker, p *field.Path, n, low, high N) {
	if n < low || n > high {
		c.add(field.Invalid(p, n, fmt.Sprintf("must be between %d and %d, inclusive", low, high)))
	}
}

// notNegative adds an error if a number is below 0.
func notNegative[N int32 | int64](c *checker, p *field.Path, n N) {
	if n < 0 {
		c.add(field.Invalid(p, n, "must be greater than or equal to 0"))
	}
}

// oneOf adds an error if a value is not supported.
func oneOf[S ~string](c *checker, p *field.Path, value S, supported ...S) {
	if !slices.Contains(supported, value) {
		c.add(field.NotSupported(p, value, supported))
	}
}

// label adds an error unless a name is a DNS label.
func (c *checker) label(p *field.Path, name string) {
	if c.required(name != "", p, "") {
		c.invalid(p, name, validation.IsDNS1123Label(name))
	}
}

// unique adds an error if a value has been seen before.
func unique[K comparable](c *checker, seen map[K]bool, p *field.Path, value K) {
	if seen[value] {
		c.add(field.Duplicate(p, value))
	}
	seen[value] = true
}

// localPath adds an error unless a path is relative and without "..".
func (c *checker) localPath(p *field.Path, path string) {
	if strings.HasPrefix(path, "/") {
		c.add(field.Invalid(p, path, "must be a relative path"))
	}
	c.noBackstep(p, path)
}

func (c *checker) noBackstep(p *field.Path, path string) {
	if slices.Contains(strings.Split(path, "/"), "..") {
		c.add(field.Invalid(p, path, "must not contain '..'"))
	}
}

func (c *checker) metadata(p *field.Path) {
	pod := c.pod
	if c.required(pod.Name != "", p.Child("name"), "a static pod needs a name") {
		c.invalid(p.Child("name"), pod.Name, decode.ValidateName(pod.Name))
	}
	c.invalid(p.Child("namespace"), pod.Namespace, validation.IsDNS1123Label(pod.Namespace))
	if uid := string(pod.UID); !poduid.Valid(uid) {
		c.add(field.Invalid(p.Child("uid"), uid, poduid.Rule+", because folders and cgroups are named by it; without one the pod gets one"))
	}
	c.logFolder(p)
	for k, v := range pod.Labels {
		c.invalid(p.Child("labels").Key(k), k, validation.IsQualifiedName(k))
		c.invalid(p.Child("labels").Key(k), v, validation.IsValidLabelValue(v))
	}
	size := 0
	for k, v := range pod.Annotations {
		c.invalid(p.Child("annotations").Key(k), k, validation.IsQualifiedName(strings.ToLower(k)))
		size += len(k) + len(v)
	}
	if size > maxAnnotations {
		c.add(field.TooLong(p.Child("annotations"), "", maxAnnotations))
	}
}

// maxAnnotations is the largest total size of a pod's annotations, in bytes.
const maxAnnotations = 256 << 10
