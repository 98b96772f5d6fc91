package podspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// objectError is the kubelet's text about a missing object or key.
type objectError struct{ text string }

func (e *objectError) Error() string { return e.text }

// errOptional reports that a missing object or key is optional; its variable is not set.
var errOptional = errors.New("it is optional and not there")

// objectKind describes how variables are made of ConfigMaps, or of Secrets.
type objectKind struct {
	name string
	data func(in Input, namespace, name string) (data map[string]string, there bool, err error)
}

var (
	configMapData = objectKind{"ConfigMap", func(in Input, namespace, name string) (map[string]string, bool, error) {
		if in.Objects == nil {
			return nil, false, nil
		}
		m, err := in.Objects.ConfigMap(namespace, name)
		if m == nil || err != nil {
			return nil, false, err
		}
		return m.Data, true, nil // binaryData is for volumes
	}}
	secretData = objectKind{"Secret", func(in Input, namespace, name string) (map[string]string, bool, error) {
		if in.Objects == nil {
			return nil, false, nil
		}
		s, err := in.Objects.Secret(namespace, name)
		if s == nil || err != nil {
			return nil, false, err
		}
		data := make(map[string]string, len(s.Data))
		for key, value := range s.Data {
			data[key] = string(value)
		}
		return data, true, nil
	}}
)

// of returns the data of an object. If the object is missing, the error is errOptional, or
// describes that.
func (k objectKind) of(p *v1.Pod, in Input, name string, optional *bool) (map[string]string, error) {
	data, there, err := k.data(in, p.Namespace, name)
	switch {
	case err != nil || there:
		return data, err
	case optional != nil && *optional:
		return nil, errOptional
	}
	return nil, &objectError{fmt.Sprintf("%s %q not found", strings.ToLower(k.name), name)}
}

// objectValue returns the value of one key.
func objectValue(k objectKind, p *v1.Pod, in Input, name, key string, optional *bool) (string, error) {
	data, err := k.of(p, in, name, optional)
	if err != nil {
		return "", err
	}
	value, there := data[key]
	switch {
	case there:
		return value, k.fits(p, name, key, value)
	case optional != nil && *optional:
		return "", errOptional
	}
	return "", &objectError{fmt.Sprintf("couldn't find key %s in %s %s/%s", key, k.name, p.Namespace, name)}
}

// fits returns an error for a value that no variable can have.
func (k objectKind) fits(p *v1.Pod, name, key, value string) error {
	if strings.Contains(value, "\x00") {
		return &objectError{fmt.Sprintf("key %s in %s %s/%s has a NUL byte, which no variable can have: mount it as a file", key, k.name, p.Namespace, name)}
	}
	return nil
}

// setAll sets the variables of a container's envFrom in its order, those of one object
// by name.
func (e *Env) setAll(p *v1.Pod, c *v1.Container, in Input) error {
	for _, from := range c.EnvFrom {
		kind, name, optional := configMapData, "", (*bool)(nil)
		switch {
		case from.ConfigMapRef != nil:
			name, optional = from.ConfigMapRef.Name, from.ConfigMapRef.Optional
		case from.SecretRef != nil:
			kind, name, optional = secretData, from.SecretRef.Name, from.SecretRef.Optional
		default:
			continue
		}
		data, err := kind.of(p, in, name, optional)
		if errors.Is(err, errOptional) {
			continue
		}
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if err := kind.fits(p, name, key, data[key]); err != nil {
				return err
			}
			if err := e.set(from.Prefix+key, data[key]); err != nil {
				return fmt.Errorf("env %.100s: %w", from.Prefix+key, err)
			}
		}
	}
	return nil
}
