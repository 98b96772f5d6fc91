package validate

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// env checks a container's environment.
func (c *checker) env(p *field.Path, ct *v1.Container) {
	for i, e := range ct.Env {
		q := p.Child("env").Index(i)
		if c.required(e.Name != "", q.Child("name"), "") {
			c.invalid(q.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name))
		}
		if e.ValueFrom != nil {
			c.envSource(q.Child("valueFrom"), e.ValueFrom, e.Value != "")
		}
	}
	for i, e := range ct.EnvFrom {
		q := p.Child("envFrom").Index(i)
		if e.Prefix != "" {
			c.invalid(q.Child("prefix"), e.Prefix, validation.IsRelaxedEnvVarName(e.Prefix))
		}
		if e.ConfigMapRef != nil {
			c.objectName(q.Child("configMapRef", "name"), e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			c.objectName(q.Child("secretRef", "name"), e.SecretRef.Name)
		}
		switch {
		case e.ConfigMapRef == nil && e.SecretRef == nil:
			c.add(field.Invalid(q, "", "must specify one of: `configMapRef` or `secretRef`"))
		case e.ConfigMapRef != nil && e.SecretRef != nil:
			c.add(field.Invalid(q, "", "may not have more than one field specified at a time"))
		}
	}
}

// envSource checks the source of a variable's value.
func (c *checker) envSource(p *field.Path, from *v1.EnvVarSource, hasValue bool) {
	count := 0
	if f := from.FieldRef; f != nil {
		count++
		c.fieldRef(p.Child("fieldRef"), f, "metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['<key>']",
			"metadata.annotations['<key>']", "spec.nodeName", "spec.serviceAccountName", "spec.host",
			"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	}
	if r := from.ResourceFieldRef; r != nil {
		count++
		c.resourceFieldRef(p.Child("resourceFieldRef"), r)
	}
	if r := from.ConfigMapKeyRef; r != nil {
		count++
		c.objectKey(p.Child("configMapKeyRef"), r.Name, r.Key)
	}
	if r := from.SecretKeyRef; r != nil {
		count++
		c.objectKey(p.Child("secretKeyRef"), r.Name, r.Key)
	}
	if r := from.FileKeyRef; r != nil {
		count++
		c.fileKeyRef(p.Child("fileKeyRef"), r)
	}
	switch {
	case count == 0:
		c.add(field.Invalid(p, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case hasValue:
		c.add(field.Invalid(p, "", "may not be specified when `value` is not empty"))
	case count > 1:
		c.add(field.Invalid(p, "", "may not have more than one field specified at a time"))
	}
}

// fileKeyRef checks a reference to a key of a file in one of the pod's emptyDirs.
func (c *checker) fileKeyRef(p *field.Path, r *v1.FileKeySelector) {
	if c.required(r.Key != "", p.Child("key"), "") {
		c.invalid(p.Child("key"), r.Key, validation.IsRelaxedEnvVarName(r.Key))
		if len(r.Key) > 128 {
			c.add(field.TooLong(p.Child("key"), r.Key, 128))
		}
	}
	if c.required(r.Path != "", p.Child("path"), "") {
		c.filePath(p.Child("path"), r.Path)
	}
	if !c.required(r.VolumeName != "", p.Child("volumeName"), "") || !c.volumesRead() {
		return
	}
	k := slices.IndexFunc(c.spec.Volumes, func(v v1.Volume) bool { return v.Name == r.VolumeName })
	switch {
	case k < 0:
		c.add(field.NotFound(p.Child("volumeName"), r.VolumeName))
	case c.spec.Volumes[k].EmptyDir == nil && len(kindsOf(&c.spec.Volumes[k].VolumeSource)) > 0:
		c.add(field.Invalid(p.Child("volumeName"), r.VolumeName, "referenced volume must be of type emptyDir"))
	}
}

// fieldRef checks a reference to one of the pod's fields that are supported,
// or to a label or annotation.
func (c *checker) fieldRef(p *field.Path, f *v1.ObjectFieldSelector, supported ...string) {
	if f.APIVersion != "v1" {
		c.add(field.Invalid(p.Child("apiVersion"), f.APIVersion, "only v1 is supported"))
	}
	q := p.Child("fieldPath")
	if !c.required(f.FieldPath != "", q, "") {
		return
	}
	for _, prefix := range []string{"metadata.labels", "metadata.annotations"} {
		key, ok := strings.CutPrefix(f.FieldPath, prefix+"['")
		if key, closed := strings.CutSuffix(key, "']"); ok && closed {
			if prefix == "metadata.annotations" {
				key = strings.ToLower(key)
			}
			c.invalid(q, f.FieldPath, validation.IsQualifiedName(key))
			return
		}
	}
	oneOf(c, q, f.FieldPath, supported...)
}

// resourceFieldRef checks a reference to a container's resources.
func (c *checker) resourceFieldRef(p *field.Path, r *v1.ResourceFieldSelector) {
	if r.ContainerName != "" && c.findContainer(r.ContainerName) == nil && c.readContainers("name") {
		c.add(field.NotFound(p.Child("containerName"), r.ContainerName))
	}
	if !c.required(r.Resource != "", p.Child("resource"), "") {
		return
	}
	kind, name, _ := strings.Cut(r.Resource, ".")
	if kind != "limits" && kind != "requests" || !isComputeResource(v1.ResourceName(name)) {
		oneOf(c, p.Child("resource"), r.Resource, "limits.cpu", "limits.memory", "limits.ephemeral-storage", "limits.hugepages-<size>",
			"requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.hugepages-<size>")
		return
	}
	c.divisor(p.Child("divisor"), v1.ResourceName(name), r.Divisor)
}

// divisor checks the unit in which a resource is shown.
func (c *checker) divisor(p *field.Path, name v1.ResourceName, q resource.Quantity) {
	if q.IsZero() {
		return
	}
	allowed := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if name == v1.ResourceCPU {
		allowed = []string{"1m", "1"}
	}
	oneOf(c, p, q.String(), allowed...)
}
