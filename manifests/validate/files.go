package validate

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
	"monopod/manifests/podfiles"
)

// volumeFields are the fields of the pod that a file in a volume can show.
func volumeFields() []string {
	return []string{"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.labels['<key>']",
		"metadata.annotations", "metadata.annotations['<key>']"}
}

// downwardAPI checks the files of a downwardAPI volume.
func (c *checker) downwardAPI(p *field.Path, items []v1.DownwardAPIVolumeFile) {
	for i := range items {
		f, q := &items[i], p.Child("items").Index(i)
		if c.required(f.Path != "", q.Child("path"), "") {
			c.filePath(q.Child("path"), f.Path)
		}
		c.fileMode(q.Child("mode"), f.Mode)
		switch {
		case f.FieldRef != nil && f.ResourceFieldRef != nil:
			c.add(field.Invalid(q, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
		case f.FieldRef != nil:
			c.fieldRef(q.Child("fieldRef"), f.FieldRef, volumeFields()...)
		case f.ResourceFieldRef != nil:
			c.required(f.ResourceFieldRef.ContainerName != "", q.Child("resourceFieldRef", "containerName"), "")
			c.resourceFieldRef(q.Child("resourceFieldRef"), f.ResourceFieldRef)
		default:
			c.add(field.Required(q, "one of fieldRef and resourceFieldRef is required"))
		}
	}
}

// madeFiles checks the size of the files in the pod's volumes, as far as the manifest alone
// determines it.
func (c *checker) madeFiles() {
	if large := podfiles.Check(c.pod, nil); large != nil {
		c.note(fault{Field: large.Field, Message: decode.Message{Full: large.Text, Plain: large.Plain}, Lately: true})
	}
}

// filePath checks the path of a file in a volume. Names that start with ".." are used by the volume
// itself.
func (c *checker) filePath(p *field.Path, path string) {
	c.localPath(p, path)
	if strings.HasPrefix(path, "..") && !strings.HasPrefix(path, "../") && path != ".." {
		c.add(field.Invalid(p, path, "must not start with '..'"))
	}
}

func (c *checker) fileMode(p *field.Path, mode *int32) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		c.add(field.Invalid(p, *mode, "must be a number between 0 and 0777 (octal), both inclusive"))
	}
}

// projected checks a volume that merges several sources.
func (c *checker) projected(p *field.Path, volume string, s *v1.ProjectedVolumeSource) {
	c.fileMode(p.Child("defaultMode"), s.DefaultMode)
	seen := map[string]bool{}
	for i := range s.Sources {
		c.projection(p.Child("sources").Index(i), volume, &s.Sources[i])
		for _, path := range pathsOf(&s.Sources[i]) {
			if seen[path] && path != "" {
				c.add(field.Invalid(p, path, "conflicting duplicate paths"))
			}
			seen[path] = true
		}
	}
}

// pathsOf returns the paths that a source names.
func pathsOf(s *v1.VolumeProjection) (paths []string) {
	var items []v1.KeyToPath
	if s.ConfigMap != nil {
		items = append(items, s.ConfigMap.Items...)
	}
	if s.Secret != nil {
		items = append(items, s.Secret.Items...)
	}
	for _, i := range items {
		paths = append(paths, i.Path)
	}
	if s.DownwardAPI != nil {
		for _, f := range s.DownwardAPI.Items {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// projection checks that a source has exactly one kind, which a static pod may have.
func (c *checker) projection(p *field.Path, volume string, s *v1.VolumeProjection) {
	kinds := kindsOf(s)
	if len(kinds) == 0 {
		c.note(fault{Field: p.String(), Message: decode.Message{
			Full: fmt.Sprintf("unknown source for projected volume %q", volume), Plain: "unknown source for a projected volume"}})
		return
	}
	for _, kind := range kinds[1:] {
		c.add(field.Forbidden(p.Child(kind), "may not specify more than 1 volume type"))
	}
	switch kind := kinds[0]; kind {
	case "downwardAPI":
		c.downwardAPI(p.Child(kind), s.DownwardAPI.Items)
	case "configMap":
		c.objectName(p.Child(kind, "name"), s.ConfigMap.Name)
		c.keyPaths(p.Child(kind), s.ConfigMap.Items)
	case "secret":
		c.objectName(p.Child(kind, "name"), s.Secret.Name)
		c.keyPaths(p.Child(kind), s.Secret.Items)
	case "serviceAccountToken":
		if c.spec.ServiceAccountName != "" {
			c.refuse(p.Child(kind), "static pods may not reference serviceaccounts (via projected volumes)")
		} else {
			c.add(field.Forbidden(p.Child(kind), "must not be specified when serviceAccountName is not set"))
		}
	case "clusterTrustBundle":
		c.refuse(p.Child(kind), "static pods may not reference clustertrustbundles")
	case "podCertificate":
		c.refuse(p.Child(kind), "static pods may not reference podcertificates")
	default:
		c.refuse(p.Child(kind), kind+" sources are not supported yet")
	}
}

// imageVolume checks an image that is mounted as a volume.
func (c *checker) imageVolume(p *field.Path, i *v1.ImageVolumeSource) {
	c.required(i.Reference != "", p.Child("reference"), "")
	c.image(p.Child("reference"), i.Reference)
	oneOf(c, p.Child("pullPolicy"), i.PullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)
}
