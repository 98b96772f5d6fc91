package update

import (
	"cmp"
	"encoding"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/podspec"
	"monopod/manifests"
	"monopod/manifests/annotations"
	"monopod/manifests/defaults"
)

// Kind is how much of a pod a difference affects: later kinds affect more.
type Kind int

const (
	Nothing Kind = iota // both versions have the same meaning
	Live                // the running pod follows: nothing restarts
	Resize              // containers get other cpu and memory while they run
	Restart             // containers restart, the sandbox and the other containers stay
	Replace             // the pod is stopped, and created again with another uid
)

var kindNames = [...]string{"nothing", "live", "resize", "restart", "replace"}

func (k Kind) String() string {
	if k < Nothing || k > Replace {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

var (
	_ encoding.TextMarshaler   = Nothing
	_ encoding.TextUnmarshaler = new(Kind)
)

// MarshalText is String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is the reverse of MarshalText.
func (k *Kind) UnmarshalText(text []byte) error {
	at := slices.Index(kindNames[:], string(text))
	if at < 0 {
		return fmt.Errorf("%q is no kind of change", text)
	}
	*k = Kind(at)
	return nil
}

// Verdict is how two versions of a pod differ.
type Verdict struct {
	Kind Kind `json:"kind"` // the largest kind of all fields
	// Containers are those that are resized or restart, in the order of the pod; none if the pod is
	// replaced.
	Containers []Container `json:"containers,omitempty"`
	Fields     []Field     `json:"fields,omitempty"` // the fields that differ; none if Kind is Nothing
}

// Container is a regular container of the pod that is resized or restarts.
type Container struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"` // Resize or Restart
}

// Field is a field that differs.
type Field struct {
	Path string `json:"path"` // such as spec.containers[app].image
	Kind Kind   `json:"kind"`
	// Change is for a person, such as `"web:1" -> "web:2"`. It is short and has no value
	// of a variable or of an HTTP header.
	Change string `json:"change"`
	Note   string `json:"note,omitempty"` // what does not follow the change
}

// String is the path and the change.
func (f Field) String() string { return f.Path + ": " + f.Change }

// Named returns the names of the containers of a kind, in order.
func (v Verdict) Named(k Kind) []string {
	var names []string
	for _, c := range v.Containers {
		if c.Kind == k {
			names = append(names, c.Name)
		}
	}
	return names
}

// Summary is the kind with the first field that differs.
func (v Verdict) Summary() string {
	switch len(v.Fields) {
	case 0:
		return v.Kind.String()
	case 1:
		return fmt.Sprintf("%s: %s", v.Kind, v.Fields[0])
	}
	return fmt.Sprintf("%s: %s, and %d more", v.Kind, v.Fields[0], len(v.Fields)-1)
}

// Because returns why a pod becomes the next version in this way: the fields that require it, or
// the policy if no field does.
func (v Verdict) Because(next *v1.Pod) string {
	var paths []string
	for _, f := range v.Fields {
		if f.Kind == v.Kind {
			paths = append(paths, f.Path)
		}
	}
	switch word, _ := annotations.UpdateOf(next); {
	case len(paths) > 0:
		return strings.Join(paths, ", ")
	case v.Kind < Replace:
		return ""
	case word == annotations.UpdateReplace:
		return "any change replaces it, as its annotation " + annotations.Update + " says"
	}
	return "any change replaces it, as the setting updatePolicy says"
}

// Plan returns the kind of change that the agent makes for a verdict under a policy. same: both
// manifests have the same digest.
func Plan(v Verdict, same bool, policy string) Kind {
	if policy == PolicyReplace && !same {
		return Replace
	}
	return v.Kind
}

// Keeps reports whether what is being created of one version can be used for the next one, too: the
// start of a container that does not change, or, if container is "", the sandbox if no container
// changes.
func Keeps(made, next *manifests.Pod, container, policy string) bool {
	if made.Digest == next.Digest {
		return true
	}
	v := Planned(made, next, policy)
	return v.Kind < Restart || v.Kind == Restart && container != "" && !slices.Contains(v.Named(Restart), container)
}

// Planned returns how the accepted version of a pod becomes the next one under a policy.
func Planned(accepted, next *manifests.Pod, policy string) Verdict {
	policy = PolicyOf(next.Pod, policy)
	v := Compare(accepted.Pod, next.Pod)
	if v.Kind = Plan(v, isSame(v, accepted, next), policy); v.Kind == Replace {
		v.Containers = nil
	}
	return v
}

// isSame reports whether two versions are the same, but for what is known of the tags that they
// follow. v is how they differ.
func isSame(v Verdict, a, b *manifests.Pod) bool {
	if a.Digest == b.Digest {
		return true
	}
	if v.Kind > Nothing || len(annotations.TagImagesOf(a.Pod))+len(annotations.TagImagesOf(b.Pod)) == 0 {
		return false
	}
	given := manifests.AsGiven([]*manifests.Pod{a, b})
	return given[0].Digest == given[1].Digest
}

// PolicyOf returns the policy for an update: from the annotation of the next version, or otherwise
// the setting.
func PolicyOf(next *v1.Pod, setting string) string {
	word, _ := annotations.UpdateOf(next)
	switch word {
	case annotations.UpdateReplace:
		return PolicyReplace
	case annotations.UpdateInPlace:
		return PolicyInPlace
	}
	return setting
}

// verdict returns the verdict for the fields that differ.
func (c *comparison) verdict(fields []Field) Verdict {
	v := Verdict{Fields: fields}
	for _, f := range fields {
		v.Kind = max(v.Kind, f.Kind)
	}
	if v.Kind == Replace {
		return v
	}
	for i := range c.new.Spec.Containers {
		ct := &c.new.Spec.Containers[i]
		if k := max(kindOf(ct.Name, fields), c.inherited(ct)); k >= Resize {
			v.Containers = append(v.Containers, Container{ct.Name, k})
		}
	}
	for i := range fields {
		notes := []string{c.stale(fields[i].Path, v.Named(Restart)), c.fixed(fields[i])}
		fields[i].Note = strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
	}
	return v
}

// kindOf returns the largest kind of the fields of a container.
func kindOf(container string, fields []Field) (k Kind) {
	profile := "metadata.annotations[" + v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + container + "]"
	for _, f := range fields {
		if f.Path == profile || strings.HasPrefix(f.Path, "spec.containers["+container+"].") {
			k = max(k, f.Kind)
		}
	}
	return k
}

// inherited returns the kind of change that applies the limits of its pod to a container.
func (c *comparison) inherited(ct *v1.Container) (k Kind) {
	for _, name := range resizable {
		if slices.Contains(c.heirs(name), ct) {
			k = max(k, c.resizing(ct, name))
		}
	}
	return k
}

// fixed returns what does not follow a resize.
func (c *comparison) fixed(f Field) string {
	switch {
	case f.Kind != Resize:
	case strings.HasSuffix(f.Path, ".requests[memory]") && podspec.QosClass(c.new) == v1.PodQOSBurstable:
		return "the OOM score stays until the container restarts"
	case strings.HasSuffix(f.Path, ".limits[memory]") && slices.ContainsFunc(c.new.Spec.Volumes, inMemory):
		return "volumes in memory keep their size until the pod is replaced"
	}
	return ""
}

func inMemory(v v1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumMemory
}

// stale returns which variables of containers that do not restart keep the old value of a changed
// field.
func (c *comparison) stale(path string, restarts []string) string {
	var notes []string
	for _, ct := range defaults.Running(&c.new.Spec) {
		for _, e := range ct.Env {
			if sourceOf(ct, e.ValueFrom) == path && !slices.Contains(restarts, ct.Name) {
				notes = append(notes, fmt.Sprintf("variable %s of container %s keeps its value until that restarts", e.Name, ct.Name))
			}
		}
	}
	return strings.Join(notes, "; ")
}

// sourceOf returns the path of the field that a variable refers to; "" if the field cannot change
// while the container runs.
func sourceOf(c *v1.Container, from *v1.EnvVarSource) string {
	switch {
	case from == nil:
	case from.FieldRef != nil:
		return strings.NewReplacer("['", "[", "']", "]").Replace(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		list, name, _ := strings.Cut(from.ResourceFieldRef.Resource, ".")
		return fmt.Sprintf("spec.containers[%s].resources.%s[%s]", cmp.Or(from.ResourceFieldRef.ContainerName, c.Name), list, name)
	}
	return ""
}
