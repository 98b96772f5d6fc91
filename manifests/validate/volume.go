package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
)

// volumes checks the pod's volumes.
func (c *checker) volumes(p *field.Path) {
	seen := map[string]bool{}
	for i := range c.spec.Volumes {
		v, q := &c.spec.Volumes[i], p.Index(i)
		c.label(q.Child("name"), v.Name)
		if v.Name != "" {
			unique(c, seen, q.Child("name"), v.Name)
		}
		c.volumeSource(q, v.Name, &v.VolumeSource)
	}
}

// volumeSource checks that a volume has one source, of a kind that static pods may have and that
// this version supports.
func (c *checker) volumeSource(p *field.Path, name string, s *v1.VolumeSource) {
	kinds := kindsOf(s)
	for _, kind := range kinds[min(1, len(kinds)):] {
		c.add(field.Forbidden(p.Child(kind), "may not specify more than 1 volume type"))
	}
	if len(kinds) == 0 {
		return
	}
	// By kind of volume, what it needs from an API server.
	needs := map[string]string{
		"ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
		"csi":       "csidrivers (via CSI volumes)",
		"glusterfs": "endpoints (via glusterFS volumes)",
		"azureFile": "secrets (via azureFile volumes)",
	}
	q := p.Child(kinds[0])
	switch kind := kinds[0]; {
	case kind == "emptyDir":
		if l := s.EmptyDir.SizeLimit; l != nil && l.Sign() < 0 {
			c.add(field.Forbidden(q.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"))
		}
		c.medium(q.Child("medium"), s.EmptyDir.Medium)
	case kind == "hostPath":
		c.hostPath(q, s.HostPath)
	case kind == "downwardAPI":
		c.fileMode(q.Child("defaultMode"), s.DownwardAPI.DefaultMode)
		c.downwardAPI(q, s.DownwardAPI.Items)
	case kind == "configMap":
		c.objectName(q.Child("name"), s.ConfigMap.Name)
		c.fileMode(q.Child("defaultMode"), s.ConfigMap.DefaultMode)
		c.keyPaths(q, s.ConfigMap.Items)
	case kind == "secret":
		c.objectName(q.Child("secretName"), s.Secret.SecretName)
		c.fileMode(q.Child("defaultMode"), s.Secret.DefaultMode)
		c.keyPaths(q, s.Secret.Items)
	case kind == "projected":
		c.projected(q, name, s.Projected)
	case kind == "image":
		c.imageVolume(q, s.Image)
	case kind == "persistentVolumeClaim":
		c.claimVolume(q.Child("claimName"), s.PersistentVolumeClaim.ClaimName)
	case needs[kind] != "":
		c.refuse(q, "static pods may not reference "+needs[kind])
	default:
		c.refuse(q, kind+" volumes are not supported yet")
	}
}

// maxFileName is the longest file name on Linux, in bytes.
const maxFileName = 255

// claimVolume checks the name of a claim; the claim's directory is named by the namespace and this
// name.
func (c *checker) claimVolume(p *field.Path, name string) {
	if !c.required(name != "", p, "") {
		return
	}
	c.invalid(p, name, decode.ValidateName(name))
	if most := maxFileName - len(c.pod.Namespace+"_"); len(name) > most {
		c.add(field.TooLong(p, name, most))
	}
}

// Claim returns what is wrong with a claim, for which a directory is created.
func Claim(claim *v1.PersistentVolumeClaim) field.ErrorList {
	var all field.ErrorList
	name := field.NewPath("metadata", "name")
	if claim.Name == "" {
		all = append(all, field.Required(name, "a claim needs a name"))
	} else {
		for _, text := range decode.ValidateName(claim.Name) {
			all = append(all, field.Invalid(name, claim.Name, withoutPattern(text)))
		}
	}
	if m := claim.Spec.VolumeMode; m != nil && *m != v1.PersistentVolumeFilesystem {
		all = append(all, field.NotSupported(field.NewPath("spec", "volumeMode"), *m, []v1.PersistentVolumeMode{v1.PersistentVolumeFilesystem}))
	}
	return all
}

func (c *checker) medium(p *field.Path, m v1.StorageMedium) {
	if size, ok := strings.CutPrefix(string(m), string(v1.StorageMediumHugePagesPrefix)); ok {
		if _, err := decode.ParseQuantity(size); err != nil {
			c.add(field.Invalid(p, string(m), "must be HugePages-<size>, such as HugePages-2Mi"))
		}
	} else {
		oneOf(c, p, m, v1.StorageMediumDefault, v1.StorageMediumMemory, v1.StorageMediumHugePages)
	}
}

// kindsOf returns the JSON names of the sources that are set in a struct with a pointer for each
// kind of source.
func kindsOf(s any) []string {
	var kinds []string
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			kinds = append(kinds, name)
		}
	}
	return kinds
}

func (c *checker) hostPath(p *field.Path, h *v1.HostPathVolumeSource) {
	if c.required(h.Path != "", p.Child("path"), "") {
		c.noBackstep(p.Child("path"), h.Path)
		c.relativeHostPath(p.Child("path"), h.Path)
	}
	if h.Type != nil {
		oneOf(c, p.Child("type"), *h.Type, v1.HostPathUnset, v1.HostPathDirectoryOrCreate, v1.HostPathDirectory,
			v1.HostPathFileOrCreate, v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev)
	}
}

// mounts checks a container's volume mounts.
func (c *checker) mounts(p *field.Path, ct *v1.Container) {
	paths := map[string]bool{}
	for i := range ct.VolumeMounts {
		m, q := &ct.VolumeMounts[i], p.Child("volumeMounts").Index(i)
		if c.required(m.Name != "", q.Child("name"), "") && !c.hasVolume(m.Name) && c.volumesRead() {
			c.add(field.NotFound(q.Child("name"), m.Name))
		}
		if c.required(m.MountPath != "", q.Child("mountPath"), "") {
			if paths[m.MountPath] {
				c.add(field.Invalid(q.Child("mountPath"), m.MountPath, "must be unique"))
			}
			paths[m.MountPath] = true
			c.noBackstep(q.Child("mountPath"), m.MountPath)
		}
		if m.SubPath != "" && m.SubPathExpr != "" {
			c.add(field.Invalid(q.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		c.localPath(q.Child("subPath"), m.SubPath)
		c.localPath(q.Child("subPathExpr"), m.SubPathExpr)
		privileged := ct.SecurityContext != nil && isTrue(ct.SecurityContext.Privileged) ||
			!c.read(p.Child("securityContext", "privileged"))
		c.propagation(q, m, privileged)
	}
	for i := range ct.VolumeDevices {
		c.refuse(p.Child("volumeDevices").Index(i), "no volume here is a device: a persistentVolumeClaim is a directory, for volumeMounts")
	}
}

func (c *checker) hasVolume(name string) bool {
	return slices.ContainsFunc(c.spec.Volumes, func(v v1.Volume) bool { return v.Name == name })
}

// propagation checks mount propagation and recursive read-only mounts.
func (c *checker) propagation(p *field.Path, m *v1.VolumeMount, privileged bool) {
	none := m.MountPropagation == nil || *m.MountPropagation == v1.MountPropagationNone
	if !none {
		q := p.Child("mountPropagation")
		oneOf(c, q, *m.MountPropagation, v1.MountPropagationBidirectional, v1.MountPropagationHostToContainer, v1.MountPropagationNone)
		c.forbid(*m.MountPropagation == v1.MountPropagationBidirectional && !privileged, q,
			"Bidirectional mount propagation is available only to privileged containers")
	}
	if m.RecursiveReadOnly == nil {
		return
	}
	q := p.Child("recursiveReadOnly")
	oneOf(c, q, *m.RecursiveReadOnly, v1.RecursiveReadOnlyDisabled, v1.RecursiveReadOnlyIfPossible, v1.RecursiveReadOnlyEnabled)
	if *m.RecursiveReadOnly == v1.RecursiveReadOnlyDisabled {
		return
	}
	c.forbid(!m.ReadOnly && c.read(p.Child("readOnly")), q, "may only be specified when readOnly is true")
	if !none && c.read(p.Child("mountPropagation")) {
		c.addQuoting(field.Forbidden(q, fmt.Sprintf("may only be specified when mountPropagation is None or not set, not %q", deref(m.MountPropagation))))
	}
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
