package validate

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// probesAndHooks checks the probes and hooks of a regular container or sidecar.
func (c *checker) probesAndHooks(ct *v1.Container, p *field.Path) {
	c.probe(p.Child("livenessProbe"), ct.LivenessProbe, true, false)
	c.probe(p.Child("readinessProbe"), ct.ReadinessProbe, false, true)
	c.probe(p.Child("startupProbe"), ct.StartupProbe, true, false)
	l := ct.Lifecycle
	if l == nil {
		return
	}
	q := p.Child("lifecycle")
	c.hook(q.Child("postStart"), l.PostStart)
	c.hook(q.Child("preStop"), l.PreStop)
	if l.StopSignal != nil {
		unsaid := (c.spec.OS == nil || c.spec.OS.Name == "") && c.read(field.NewPath("spec", "os", "name"))
		c.forbid(unsaid, q.Child("stopSignal"), "may not be set for containers with empty `spec.os.name`")
		c.stopSignal(q.Child("stopSignal"), *l.StopSignal)
	}
}

// probe checks a probe. once: the success threshold must be 1; noGrace: it must have no grace
// period, as it kills nothing.
func (c *checker) probe(p *field.Path, pr *v1.Probe, once, noGrace bool) {
	if pr == nil {
		return
	}
	c.handler(p, pr.Exec, pr.HTTPGet, pr.TCPSocket, pr.GRPC, nil)
	notNegative(c, p.Child("initialDelaySeconds"), pr.InitialDelaySeconds)
	notNegative(c, p.Child("timeoutSeconds"), pr.TimeoutSeconds)
	notNegative(c, p.Child("periodSeconds"), pr.PeriodSeconds)
	notNegative(c, p.Child("successThreshold"), pr.SuccessThreshold)
	notNegative(c, p.Child("failureThreshold"), pr.FailureThreshold)
	if once && pr.SuccessThreshold > 1 {
		c.add(field.Invalid(p.Child("successThreshold"), pr.SuccessThreshold, "must be 1"))
	}
	if g := pr.TerminationGracePeriodSeconds; g != nil {
		q := p.Child("terminationGracePeriodSeconds")
		if noGrace {
			c.add(field.Invalid(q, *g, "must not be set for readinessProbes"))
		} else {
			within(c, q, *g, 1, math.MaxInt64)
		}
	}
}

// hook checks a lifecycle hook.
func (c *checker) hook(p *field.Path, h *v1.LifecycleHandler) {
	if h != nil {
		c.handler(p, h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep)
	}
}

// handler checks that there is exactly one handler and that it makes sense.
func (c *checker) handler(p *field.Path, exec *v1.ExecAction, get *v1.HTTPGetAction, tcp *v1.TCPSocketAction, grpc *v1.GRPCAction, sleep *v1.SleepAction) {
	given := 0
	next := func(there bool, name string) bool {
		if !there {
			return false
		}
		if given++; given > 1 {
			c.add(field.Forbidden(p.Child(name), "may not specify more than 1 handler type"))
		}
		return given == 1
	}
	if next(exec != nil, "exec") {
		c.required(len(exec.Command) > 0, p.Child("exec", "command"), "")
	}
	if next(get != nil, "httpGet") {
		c.httpGet(p.Child("httpGet"), get)
	}
	if next(tcp != nil, "tcpSocket") {
		c.port(p.Child("tcpSocket", "port"), tcp.Port)
	}
	if next(grpc != nil, "grpc") {
		c.port(p.Child("grpc", "port"), intstr.FromInt32(grpc.Port))
	}
	if next(sleep != nil, "sleep") {
		grace := *c.spec.TerminationGracePeriodSeconds
		known := c.read(field.NewPath("spec", "terminationGracePeriodSeconds"))
		if known && (sleep.Seconds < 0 || sleep.Seconds > grace) {
			c.addQuoting(field.Invalid(p.Child("sleep", "seconds"), sleep.Seconds, fmt.Sprintf("must be between 0 and the pod's terminationGracePeriodSeconds (%d)", grace)))
		}
	}
	c.required(given > 0, p, "must specify a handler type")
}

func (c *checker) httpGet(p *field.Path, h *v1.HTTPGetAction) {
	c.required(h.Path != "", p.Child("path"), "")
	c.port(p.Child("port"), h.Port)
	oneOf(c, p.Child("scheme"), h.Scheme, v1.URISchemeHTTP, v1.URISchemeHTTPS)
	for i, header := range h.HTTPHeaders {
		c.invalid(p.Child("httpHeaders").Index(i).Child("name"), header.Name, validation.IsHTTPHeaderName(header.Name))
	}
}

// port checks a port's number or name.
func (c *checker) port(p *field.Path, port intstr.IntOrString) {
	if port.Type == intstr.String {
		c.portName(p, port.StrVal)
		return
	}
	within(c, p, port.IntVal, 1, 65535)
}

func (c *checker) portName(p *field.Path, name string) {
	c.invalid(p, name, validation.IsValidPortName(name))
}
