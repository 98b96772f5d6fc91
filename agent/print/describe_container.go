package print

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

func (d *description) containers(title string, all []v1.Container, statuses []v1.ContainerStatus) {
	d.line(0, title, "")
	for i := range all {
		c := &all[i]
		s, _ := StatusOf(statuses, c.Name)
		fmt.Fprintf(d.w, "  %s:\n", OneLine(c.Name))
		d.identityOf(c, &s)
		d.stateOf(&s)
		d.resources("Limits", c.Resources.Limits)
		d.resources("Requests", c.Resources.Requests)
		d.probes(c)
		d.env(c)
		d.mounts(c)
	}
}

// identityOf prints the specification of a container.
func (d *description) identityOf(c *v1.Container, s *v1.ContainerStatus) {
	d.lineIf(4, "Container ID", s.ContainerID)
	d.line(4, "Image", c.Image)
	d.lineIf(4, "Image ID", s.ImageID)
	if c.RestartPolicy != nil {
		d.line(4, "Restart Policy", string(*c.RestartPolicy))
	}
	ports, host := PortWords(c)
	d.lineIf(4, "Ports", strings.Join(ports, ", "))
	d.lineIf(4, "Host Ports", strings.Join(host, ", "))
	d.words("Command", c.Command)
	d.words("Args", c.Args)
}

// PortWords returns the ports of a container, and those of the machine that lead to them.
func PortWords(c *v1.Container) (ports, host []string) {
	for _, p := range c.Ports {
		ports = append(ports, fmt.Sprintf("%d/%s", p.ContainerPort, cmp.Or(p.Protocol, v1.ProtocolTCP)))
		if p.HostPort > 0 {
			host = append(host, fmt.Sprintf("%s%d/%s", colon(p.HostIP), p.HostPort, cmp.Or(p.Protocol, v1.ProtocolTCP)))
		}
	}
	return ports, host
}

func colon(ip string) string {
	if ip == "" {
		return ""
	}
	return ip + ":"
}

// words prints a command, a line for each word.
func (d *description) words(key string, words []string) {
	if len(words) == 0 {
		return
	}
	d.line(4, key, "")
	for _, word := range words {
		fmt.Fprintf(d.w, "      %s\n", OneLine(word))
	}
}

// stateOf prints the present and the last state of a container.
func (d *description) stateOf(s *v1.ContainerStatus) {
	d.stateLines("State", s.State)
	if s.LastTerminationState != (v1.ContainerState{}) {
		d.stateLines("Last State", s.LastTerminationState)
	}
	d.line(4, "Ready", title(s.Ready))
	d.line(4, "Restart Count", fmt.Sprint(s.RestartCount))
}

func title(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func (d *description) stateLines(key string, s v1.ContainerState) {
	switch {
	case s.Running != nil:
		d.line(4, key, "Running")
		d.lineIf(6, "Started", d.ago(s.Running.StartedAt))
	case s.Terminated != nil:
		t := s.Terminated
		d.line(4, key, "Terminated")
		d.lineIf(6, "Reason", t.Reason)
		d.lineIf(6, "Message", t.Message)
		d.line(6, "Exit Code", fmt.Sprint(t.ExitCode))
		if t.Signal > 0 {
			d.line(6, "Signal", fmt.Sprint(t.Signal))
		}
		d.lineIf(6, "Started", d.ago(t.StartedAt))
		d.lineIf(6, "Finished", d.ago(t.FinishedAt))
	default:
		d.line(4, key, "Waiting")
		if s.Waiting != nil {
			d.lineIf(6, "Reason", s.Waiting.Reason)
			d.lineIf(6, "Message", s.Waiting.Message)
		}
	}
}

func (d *description) resources(key string, list v1.ResourceList) {
	if len(list) == 0 {
		return
	}
	d.line(4, key, "")
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		d.line(6, string(name), q.String())
	}
}

// env prints a container's environment as in its manifest.
func (d *description) env(c *v1.Container) {
	if len(c.EnvFrom) > 0 {
		d.line(4, "Environment Variables from", "")
	}
	for _, e := range c.EnvFrom {
		var name, what string
		var optional *bool
		switch {
		case e.ConfigMapRef != nil:
			name, what, optional = e.ConfigMapRef.Name, "ConfigMap", e.ConfigMapRef.Optional
		case e.SecretRef != nil:
			name, what, optional = e.SecretRef.Name, "Secret", e.SecretRef.Optional
		}
		if e.Prefix != "" {
			what += fmt.Sprintf(" with prefix %q", e.Prefix)
		}
		d.line(6, name, what+optionally(optional))
	}
	if len(c.Env) > 0 {
		d.line(4, "Environment", "")
	}
	for _, e := range c.Env {
		d.line(6, e.Name, envValue(&e))
	}
}

// envValue returns a variable's value, or where it comes from.
func envValue(e *v1.EnvVar) string {
	f := e.ValueFrom
	switch {
	case f == nil:
		return e.Value
	case f.FieldRef != nil:
		return fmt.Sprintf("(%s:%s)", cmp.Or(f.FieldRef.APIVersion, "v1"), f.FieldRef.FieldPath)
	case f.ResourceFieldRef != nil:
		return "(" + f.ResourceFieldRef.Resource + ")"
	case f.SecretKeyRef != nil:
		return fmt.Sprintf("<set to the key '%s' in secret '%s'>%s", f.SecretKeyRef.Key, f.SecretKeyRef.Name, optionally(f.SecretKeyRef.Optional))
	case f.ConfigMapKeyRef != nil:
		return fmt.Sprintf("<set to the key '%s' of config map '%s'>%s", f.ConfigMapKeyRef.Key, f.ConfigMapKeyRef.Name, optionally(f.ConfigMapKeyRef.Optional))
	case f.FileKeyRef != nil:
		return fmt.Sprintf("<set to the key '%s' in file '%s' of volume '%s'>%s", f.FileKeyRef.Key, f.FileKeyRef.Path, f.FileKeyRef.VolumeName, optionally(f.FileKeyRef.Optional))
	}
	return "<unknown>"
}

func optionally(b *bool) string {
	if b != nil && *b {
		return " (optional)"
	}
	return ""
}

func (d *description) mounts(c *v1.Container) { d.words("Mounts", MountWords(c)) }

// MountWords returns where the volumes of a container are.
func MountWords(c *v1.Container) (mounts []string) {
	for _, m := range c.VolumeMounts {
		how := "rw"
		if m.ReadOnly {
			how = "ro"
		}
		if path := cmp.Or(m.SubPath, m.SubPathExpr); path != "" {
			how += ",path=" + fmt.Sprintf("%q", path)
		}
		mounts = append(mounts, fmt.Sprintf("%s from %s (%s)", m.MountPath, m.Name, how))
	}
	slices.Sort(mounts)
	return mounts
}
