// Package probe checks containers as their manifests define it: by a command in the container, by
// HTTP, by a TCP connection or by gRPC. This process does everything; the image needs no tool. A
// Prober runs one probe, a Set runs those of one pod's containers on schedule and keeps their
// results.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"monopod/agent/clip"
)

// Kind is what a probe is for.
type Kind string

const (
	Startup   Kind = "startup"   // until it succeeds, no other probe runs
	Liveness  Kind = "liveness"  // the container is killed when it fails
	Readiness Kind = "readiness" // the container is not ready while it fails
)

// Title is the first word of messages: "Liveness".
func (k Kind) Title() string { return strings.ToUpper(string(k[:1])) + string(k[1:]) }

// of returns the container's probe of that kind, or nil.
func (k Kind) of(c *v1.Container) *v1.Probe {
	switch k {
	case Startup:
		return c.StartupProbe
	case Liveness:
		return c.LivenessProbe
	}
	return c.ReadinessProbe
}

// index is the kind's place in Results.Failing.
func (k Kind) index() int { return slices.Index([]Kind{Startup, Liveness, Readiness}, k) }

// Any reports whether the container has a probe.
func Any(c *v1.Container) bool {
	return c.StartupProbe != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil
}

// Result is the result of a probe.
type Result int

const (
	Failure Result = iota
	Success
	Warning // success, with something that people should know
)

// Outcome is a result and the message of the probed side, in the kubelet's words if it has some,
// at most 10 KiB.
type Outcome struct {
	Result Result
	Output string
}

// Finding is a result, or that there was none.
type Finding int

const (
	Failed Finding = iota
	Succeeded
	Unknown // the probe could not be carried out
)

// outputLimit is how much of an answer is read, in bytes, as the kubelet does.
const outputLimit = 10 << 10

// headerLimit is how long the header of an answer may be, in bytes.
const headerLimit = 64 << 10

// Exec runs a command in a container and returns its exit code and its output. An error that is a
// context.DeadlineExceeded means that the command took longer than timeout, which is whole
// seconds; one that is a CommandError that the command caused it.
type Exec func(ctx context.Context, t *Target, command []string, timeout time.Duration) (output string, code int32, err error)

// probe carries out one probe. An error means that it could not be carried out, which means
// nothing about the container.
func (p *Prober) probe(ctx context.Context, pr *v1.Probe, t *Target, exec Exec) (Outcome, error) {
	o, err := p.ask(ctx, pr, t, exec)
	o.Output = clip.Head(o.Output, outputLimit)
	return o, clip.Error(err, outputLimit)
}

func (p *Prober) ask(ctx context.Context, pr *v1.Probe, t *Target, exec Exec) (Outcome, error) {
	timeout := time.Duration(max(pr.TimeoutSeconds, 1)) * time.Second
	switch {
	case pr.Exec != nil:
		return command(ctx, t, pr.Exec.Command, timeout, exec)
	case pr.HTTPGet != nil:
		port, err := portOf(pr.HTTPGet.Port, t.Container)
		if err != nil {
			return Outcome{}, err
		}
		host, err := t.host(pr.HTTPGet.Host)
		if err != nil {
			return Outcome{}, err
		}
		return p.http(ctx, pr.HTTPGet, host, port, timeout)
	case pr.TCPSocket != nil:
		port, err := portOf(pr.TCPSocket.Port, t.Container)
		if err != nil {
			return Outcome{}, err
		}
		host, err := t.host(pr.TCPSocket.Host)
		if err != nil {
			return Outcome{}, err
		}
		return p.tcp(ctx, join(host, port), timeout), nil
	case pr.GRPC != nil:
		service := ""
		if pr.GRPC.Service != nil {
			service = *pr.GRPC.Service
		}
		host, err := t.host("")
		if err != nil {
			return Outcome{}, err
		}
		return p.grpc(ctx, join(host, int(pr.GRPC.Port)), service, timeout), nil
	}
	return Outcome{}, fmt.Errorf("missing probe handler for container %s", t.Container.Name)
}

// host returns the host that a probe goes to: its own or, if that is "", the pod.
func (t *Target) host(own string) (string, error) {
	switch {
	case own != "":
		return own, nil
	case t.NoHost:
		return "", errors.New("the pod's address is not known")
	case t.Machine != nil:
		return t.Machine(), nil
	}
	return t.Host, nil
}

func join(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// portOf returns a port's number; names are those of the container's ports.
func portOf(port intstr.IntOrString, c *v1.Container) (int, error) {
	n := int(port.IntVal)
	if port.Type == intstr.String {
		n = 0
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				n = int(p.ContainerPort)
			}
		}
		if n == 0 {
			if n, _ = strconv.Atoi(port.StrVal); n == 0 {
				return 0, fmt.Errorf("container %s has no port %q", c.Name, port.StrVal)
			}
		}
	}
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("invalid port number: %d", n)
	}
	return n, nil
}
