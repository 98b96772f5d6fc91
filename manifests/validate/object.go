package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
)

// The checks in this file are the API server's for ConfigMaps and Secrets
// (pkg/apis/core/validation: ValidateConfigMap, ValidateSecret). No message quotes a value; for
// what may be a Secret, none quotes a name or a key either.

// maxObject is the largest total size of an object's values, in bytes (MaxSecretSize).
const maxObject = 1 << 20

// ConfigMap returns what is wrong with a ConfigMap.
func ConfigMap(m *v1.ConfigMap) []fault {
	c := &objectChecker{}
	c.metadata(&m.ObjectMeta)
	c.keys("data", slices.Sorted(maps.Keys(m.Data)))
	c.keys("binaryData", slices.Sorted(maps.Keys(m.BinaryData)))
	size := 0
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		size += len(m.Data[key])
		if _, twice := m.BinaryData[key]; twice {
			c.add(keyed("binaryData", key), decode.Fixed("data has this key, too: remove one of the two"))
		}
	}
	for _, value := range m.BinaryData {
		size += len(value)
	}
	c.size("data", size)
	return c.faults
}

// Secret returns what is wrong with a Secret whose stringData was moved into its data. in returns
// the field in which the manifest has a key.
func Secret(s *v1.Secret, in func(key string) string) []fault {
	c := &objectChecker{}
	c.metadata(&s.ObjectMeta)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		c.keys(in(key), []string{key})
		size += len(s.Data[key])
	}
	c.size("data", size)
	need := func(key, what string) bool {
		_, there := s.Data[key]
		if !there {
			c.add("data", decode.Fixed(fmt.Sprintf("a Secret of type %s needs the key %s%s", s.Type, key, what))) // one of the types below
		}
		return there
	}
	switch s.Type {
	case v1.SecretTypeDockercfg:
		if need(v1.DockerConfigKey, "") {
			c.object(in(v1.DockerConfigKey), v1.DockerConfigKey, s.Data)
		}
	case v1.SecretTypeDockerConfigJson:
		if need(v1.DockerConfigJsonKey, "") {
			c.object(in(v1.DockerConfigJsonKey), v1.DockerConfigJsonKey, s.Data)
		}
	case v1.SecretTypeBasicAuth:
		if _, other := s.Data[v1.BasicAuthPasswordKey]; !other {
			need(v1.BasicAuthUsernameKey, " or "+v1.BasicAuthPasswordKey)
		}
	case v1.SecretTypeSSHAuth:
		if len(s.Data[v1.SSHAuthPrivateKey]) == 0 {
			delete(s.Data, v1.SSHAuthPrivateKey) // an empty one counts as missing
			need(v1.SSHAuthPrivateKey, "")
		}
	case v1.SecretTypeTLS:
		need(v1.TLSCertKey, "")
		need(v1.TLSPrivateKeyKey, "")
	case v1.SecretTypeServiceAccountToken:
		if s.Annotations[v1.ServiceAccountNameKey] == "" {
			c.add("metadata.annotations", decode.Fixed(fmt.Sprintf("a Secret of type %s needs the annotation %s", s.Type, v1.ServiceAccountNameKey)))
		}
	}
	return c.faults
}

// objectChecker collects the faults of one ConfigMap or Secret.
type objectChecker struct{ faults []fault }

func (c *objectChecker) add(at string, m decode.Message) {
	c.faults = append(c.faults, fault{Field: at, Message: m})
}

func (c *objectChecker) metadata(m *metav1.ObjectMeta) {
	if m.Name == "" {
		c.add("metadata.name", decode.Fixed(field.Required(nil, "").ErrorBody()))
	}
	for _, text := range decode.ValidateName(m.Name) {
		if m.Name != "" {
			c.add("metadata.name", decode.Invalid(field.Invalid(nil, decode.Clip(m.Name), withoutPattern(text))))
		}
	}
	if m.Namespace != "" {
		for _, text := range validation.IsDNS1123Label(m.Namespace) {
			c.add("metadata.namespace", decode.Invalid(field.Invalid(nil, decode.Clip(m.Namespace), withoutPattern(text))))
		}
	}
}

// keys checks the names of keys.
func (c *objectChecker) keys(in string, keys []string) {
	for _, key := range keys {
		if texts := validation.IsConfigMapKey(key); len(texts) > 0 {
			why := withoutPattern(strings.Join(texts, "; "))
			c.add(keyed(in, key), decode.Message{Full: fmt.Sprintf("invalid key %q: %s", decode.Clip(key), why), Plain: "invalid key: " + why})
		}
	}
}

func (c *objectChecker) size(in string, size int) {
	if size > maxObject {
		c.add(in, decode.Fixed(fmt.Sprintf("the values have %d bytes together: at most %d (1 MiB) fit into one object", size, maxObject)))
	}
}

// object checks that a value is a JSON object.
func (c *objectChecker) object(in, key string, data map[string][]byte) {
	var any map[string]any
	if json.Unmarshal(data[key], &any) != nil { // the error is not used: it quotes the value
		c.add(keyed(in, key), decode.Fixed(key+" is not a JSON object: it is to hold what docker writes into its config file"))
	}
}

// keyed returns the field of a key.
func keyed(in, key string) string { return in + "[" + key + "]" }
