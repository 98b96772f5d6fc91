package validate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
)

// objectName checks the name of a ConfigMap or Secret that the pod refers to.
func (c *checker) objectName(p *field.Path, name string) {
	if c.required(name != "", p, "") {
		c.invalid(p, name, decode.ValidateName(name))
	}
}

// objectKey checks a reference to one key of a ConfigMap or Secret.
func (c *checker) objectKey(p *field.Path, name, key string) {
	c.objectName(p.Child("name"), name)
	if c.required(key != "", p.Child("key"), "") {
		c.invalid(p.Child("key"), key, validation.IsConfigMapKey(key))
	}
}

// keyPaths checks the keys that a volume shows, and their paths.
func (c *checker) keyPaths(p *field.Path, items []v1.KeyToPath) {
	for i := range items {
		q := p.Child("items").Index(i)
		c.required(items[i].Key != "", q.Child("key"), "")
		if c.required(items[i].Path != "", q.Child("path"), "") {
			c.filePath(q.Child("path"), items[i].Path)
		}
		c.fileMode(q.Child("mode"), items[i].Mode)
	}
}
