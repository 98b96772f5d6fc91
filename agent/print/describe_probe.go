package print

import (
	"cmp"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

func (d *description) probes(c *v1.Container) {
	for _, p := range []struct {
		key   string
		probe *v1.Probe
	}{{"Startup", c.StartupProbe}, {"Liveness", c.LivenessProbe}, {"Readiness", c.ReadinessProbe}} {
		if p.probe != nil {
			d.line(4, p.key, ProbeWords(p.probe))
		}
	}
	if c.Lifecycle == nil {
		return
	}
	if h := c.Lifecycle.PostStart; h != nil {
		d.line(4, "PostStart", HookWords(h))
	}
	if h := c.Lifecycle.PreStop; h != nil {
		d.line(4, "PreStop", HookWords(h))
	}
}

// ProbeWords returns what a probe does, how often, and what counts.
func ProbeWords(p *v1.Probe) string {
	s := "none"
	switch {
	case p.Exec != nil:
		s = "runs " + commandWords(p.Exec)
	case p.HTTPGet != nil:
		s = "gets " + urlOf(p.HTTPGet)
	case p.TCPSocket != nil:
		s = fmt.Sprintf("connects to %s:%s", p.TCPSocket.Host, p.TCPSocket.Port.String())
	case p.GRPC != nil:
		s = fmt.Sprintf("asks by gRPC on port %d", p.GRPC.Port)
		if name := value(p.GRPC.Service); name != "" {
			s += fmt.Sprintf(" for %s", name)
		}
	}
	s += fmt.Sprintf(" every %ds for at most %ds", max(p.PeriodSeconds, 1), max(p.TimeoutSeconds, 1))
	if p.InitialDelaySeconds > 0 {
		s += fmt.Sprintf(", after %ds at first", p.InitialDelaySeconds)
	}
	s += fmt.Sprintf("; fails after %s", times(max(p.FailureThreshold, 1)))
	if p.SuccessThreshold > 1 {
		s += fmt.Sprintf(", succeeds after %s", times(p.SuccessThreshold))
	}
	return s
}

func times(n int32) string {
	if n == 1 {
		return "1 time"
	}
	return fmt.Sprintf("%d times in a row", n)
}

func commandWords(e *v1.ExecAction) string { return "[" + strings.Join(e.Command, " ") + "]" }

func urlOf(h *v1.HTTPGetAction) string {
	scheme := strings.ToLower(string(cmp.Or(h.Scheme, v1.URISchemeHTTP)))
	return fmt.Sprintf("%s://%s:%s/%s", scheme, h.Host, h.Port.String(), strings.TrimPrefix(h.Path, "/"))
}

func HookWords(h *v1.LifecycleHandler) string {
	switch {
	case h.Exec != nil:
		return "runs " + commandWords(h.Exec)
	case h.HTTPGet != nil:
		return "gets " + urlOf(h.HTTPGet)
	case h.Sleep != nil:
		return fmt.Sprintf("sleeps for %ds", h.Sleep.Seconds)
	case h.TCPSocket != nil:
		return fmt.Sprintf("connects to %s:%s", h.TCPSocket.Host, h.TCPSocket.Port.String())
	}
	return "none"
}
