package podspec

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
)

// Inline returns the variables of a container with the values of ConfigMaps and Secrets written
// out, for an agent that has no such objects. Errors name variables, never their values.
func Inline(p *v1.Pod, c *v1.Container, in Input) (all []v1.EnvVar, err error) {
	e := &Env{Values: map[string]string{}}
	if err := e.setAll(p, c, in); err != nil {
		return nil, err
	}
	for _, name := range e.names {
		if all, err = writeOut(all, name, e.Values[name]); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Env {
		if !isOfObject(&v) {
			all = append(all, v)
			continue
		}
		value, err := envSource(p, c, v.ValueFrom, in, nil)
		if err == nil {
			all, err = writeOut(all, v.Name, value)
		}
		if err != nil && !errors.Is(err, errOptional) {
			return nil, err
		}
	}
	return all, nil
}

// isOfObject reports whether the value of a variable is one of a ConfigMap or Secret.
func isOfObject(v *v1.EnvVar) bool {
	from := v.ValueFrom
	return v.Value == "" && from != nil && (from.ConfigMapKeyRef != nil || from.SecretKeyRef != nil)
}

// writeOut adds a variable. The value of an object is not expanded, and a written one is: so each $
// is escaped.
func writeOut(all []v1.EnvVar, name, value string) ([]v1.EnvVar, error) {
	if !utf8.ValidString(value) {
		return nil, fmt.Errorf("env %.100s: its value is no text, which no manifest can hold", name)
	}
	return append(all, v1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")}), nil
}
