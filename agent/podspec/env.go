package podspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	rt "k8s.io/cri-api/pkg/apis/runtime/v1"

	"monopod/manifests/decode"
)

// Env is a container's environment: values by name, and the names in the order of
// their first declaration.
type Env struct {
	names  []string
	Values map[string]string
	size   int // total size of the env, command and args strings, as Linux counts them
}

// set sets a variable. It refuses a string that Linux does not pass to a process.
func (e *Env) set(name, value string) error {
	old, again := e.Values[name]
	if again {
		e.size -= stringSize(name, old)
	} else {
		e.names = append(e.names, name)
	}
	e.Values[name] = value
	return e.count(stringSize(name, value))
}

// stringSize returns the length of NAME=value with its NUL.
func stringSize(name, value string) int { return len(name) + len(value) + 2 }

// count adds the size of a string and checks the bounds.
func (e *Env) count(size int) error {
	e.size += size
	if size > decode.MaxString {
		return decode.ErrLongString
	}
	if e.size > decode.MaxStrings {
		return decode.ErrLongStrings
	}
	return nil
}

func (e *Env) list() []*rt.KeyValue {
	var out []*rt.KeyValue
	for _, k := range e.names {
		out = append(out, &rt.KeyValue{Key: k, Value: []byte(e.Values[k])})
	}
	return out
}

// expand replaces each $(NAME) of a set variable.
func (e *Env) expand(s string) (string, error) {
	return expand(s, decode.MaxString, func(name string) (string, bool) {
		v, ok := e.Values[name]
		return v, ok
	})
}

// ExpandAll expands the strings of a list, which count together with the variables.
// name is the field, for errors.
func (e *Env) ExpandAll(name string, in []string) ([]string, error) {
	out := slices.Clone(in)
	for i := range out {
		var err error
		if out[i], err = e.expand(out[i]); err == nil {
			err = e.count(len(out[i]) + 1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", name, i, err)
		}
	}
	return out, nil
}

// expand replaces $(NAME) by its value and $$ by $, in one pass: values are not expanded again. A
// name that lookup does not know, and any other $, stays. A result longer than most is an error.
func expand(s string, most int, lookup func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	for p := range decode.Pieces(s) {
		text := p.Text
		if p.Ref {
			if v, ok := lookup(p.Name); ok {
				text = v
			}
		}
		if b.Len()+len(text) > most {
			return "", decode.ErrLongString
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// environment resolves a container's variables in their order: a value may refer to
// those before it. Errors name variables, never their values.
func environment(p *v1.Pod, c *v1.Container, in Input, n *Host) (*Env, error) {
	e := &Env{Values: map[string]string{}}
	if err := e.setAll(p, c, in); err != nil {
		return nil, err
	}
	for _, v := range c.Env {
		value, err := "", error(nil)
		if v.Value != "" || v.ValueFrom == nil {
			value, err = e.expand(v.Value)
		} else {
			value, err = envSource(p, c, v.ValueFrom, in, n)
		}
		var o *objectError
		switch {
		case errors.Is(err, errOptional):
			continue
		case errors.As(err, &o):
			return nil, err // the kubelet's text, which names no variable
		case err == nil:
			err = e.set(v.Name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("env %.100s: %w", v.Name, err)
		}
	}
	return e, nil
}

func envSource(p *v1.Pod, c *v1.Container, s *v1.EnvVarSource, in Input, n *Host) (string, error) {
	switch {
	case s.FieldRef != nil:
		return fieldValue(p, s.FieldRef.FieldPath, in, n)
	case s.ResourceFieldRef != nil:
		return resourceValue(p, c, s.ResourceFieldRef, n)
	case s.ConfigMapKeyRef != nil:
		r := s.ConfigMapKeyRef
		return objectValue(configMapData, p, in, r.Name, r.Key, r.Optional)
	case s.SecretKeyRef != nil:
		r := s.SecretKeyRef
		return objectValue(secretData, p, in, r.Name, r.Key, r.Optional)
	case s.FileKeyRef != nil:
		return fileValue(in, s.FileKeyRef)
	default:
		return "", errors.New("valueFrom names no source")
	}
}

// fieldValue returns a field of the pod or its node.
func fieldValue(p *v1.Pod, path string, in Input, n *Host) (string, error) {
	switch path {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "spec.nodeName", "spec.host":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		if len(n.HostIPs) == 0 {
			return "", errors.New("host IP unknown; the machine has no address")
		}
		return firstOrAll(path, n.HostIPs), nil
	case "status.podIP", "status.podIPs":
		return firstOrAll(path, podIPs(p, in, n)), nil
	case "metadata.labels": // these two only in volumes
		return keyLines(p.Labels), nil
	case "metadata.annotations":
		return keyLines(p.Annotations), nil
	}
	of, key, ok := strings.Cut(strings.TrimSuffix(path, "']"), "['")
	switch {
	case ok && of == "metadata.labels":
		return p.Labels[key], nil
	case ok && of == "metadata.annotations":
		return p.Annotations[key], nil
	default:
		return "", fmt.Errorf("unsupported fieldPath: %s", path)
	}
}

// keyLines returns one line for each key, sorted, with the value in Go's quotes.
func keyLines(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s=%q", k, m[k]))
	}
	return strings.Join(out, "\n")
}

// firstOrAll returns the first address, or all for a field path in the plural.
func firstOrAll(path string, ips []string) string {
	if !strings.HasSuffix(path, "s") {
		ips = ips[:min(len(ips), 1)]
	}
	return strings.Join(ips, ",")
}

// podIPs returns the pod's addresses: the machine's for a pod on its network.
func podIPs(p *v1.Pod, in Input, n *Host) []string {
	if p.Spec.HostNetwork {
		return n.HostIPs
	}
	return PrimaryFirst(in.PodIPs, n)
}

// PrimaryFirst returns at most one address of each family, the machine's primary family first.
func PrimaryFirst(ips []string, n *Host) []string {
	v6 := func(ip string) bool { return strings.Contains(ip, ":") }
	primary6 := len(n.HostIPs) > 0 && v6(n.HostIPs[0])
	var out []string
	for _, want6 := range []bool{primary6, !primary6} {
		if i := slices.IndexFunc(ips, func(ip string) bool { return v6(ip) == want6 }); i >= 0 {
			out = append(out, ips[i])
		}
	}
	return out
}

// ExpandStatic expands a command with the variables that have fixed values.
func ExpandStatic(command []string, vars []v1.EnvVar) ([]string, error) {
	if !slices.ContainsFunc(command, func(arg string) bool { return strings.Contains(arg, "$") }) {
		return command, nil
	}
	fixed := Env{Values: map[string]string{}}
	for _, v := range vars {
		if v.ValueFrom == nil {
			fixed.Values[v.Name] = v.Value
		}
	}
	return fixed.ExpandAll("command", command)
}
