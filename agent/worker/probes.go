package worker

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/events"
	"monopod/agent/plan"
	"monopod/agent/pleg"
	"monopod/agent/podspec"
	"monopod/agent/podstatus"
	"monopod/agent/probe"
	"monopod/cri"
)

// probes are the probes of the containers that run.
type probes struct {
	pod    *pod
	report *reporter
	set    *probe.Set
	born   time.Time // when the worker started
}

func newProbes(p *pod, report *reporter) *probes {
	b := &probes{pod: p, report: report, born: time.Now()}
	b.set = probe.NewSet(&p.shared.Prober, p.shared.ExecProbe, p.Wake, p.log)
	b.set.Event = p.events.RecordProbe
	b.set.Fault = func(t *probe.Target, err error) { p.fault(err, "probe run", t.Container.Name) }
	return b
}

// targets returns the containers to probe: all that run of the desired
// instance, and those still ready of instances that leave.
func (b *probes) targets(s *plan.Facts) []probe.Target {
	var out []probe.Target
	leaving := s.Leaving()
	for _, uid := range leaving {
		if c := b.pod.known[uid]; c != nil {
			out = b.targetsOf(out, s, c.Pod, s.Observed.Instances[uid], true)
		}
	}
	if s.Pod != nil && len(leaving) == 0 && s.Checkpoint().Ended() == "" {
		out = b.targetsOf(out, s, s.Pod.Pod, s.Instance(), false)
	}
	return out
}

func (b *probes) targetsOf(out []probe.Target, s *plan.Facts, pod *v1.Pod, i *pleg.Instance, leaving bool) []probe.Target {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range list {
			c := &list[k]
			n := i.Newest(c.Name)
			if n == nil || !n.Running() || !probe.Any(c) || !leaving && s.Hooking(n) {
				continue // probes start when the postStart hook is done
			}
			t := probe.Target{ID: n.ID, Pod: pod, Began: n.Started, Container: c, About: events.AboutContainer(pod, c.Name), Leaving: leaving, Adopted: n.Started.Before(b.born)}
			ips := podstatus.SandboxIPs(pod, i, b.pod.shared.Disk.Machine.Now())
			switch {
			case pod.Spec.HostNetwork:
				t.Machine = b.machine
			case len(ips) > 0:
				t.Host = ips[0]
			default:
				t.NoHost = true
			}
			t.Started, t.Ready = b.report.reported(string(pod.UID), n)
			out = append(out, t)
		}
	}
	return out
}

// machine returns the machine's address, which another network may change at any time.
func (b *probes) machine() string {
	ips := b.pod.shared.Disk.Machine.Addresses()
	if len(ips) == 0 {
		return ""
	}
	return ips[0]
}

// ExecProbe runs a probe's command. $(NAME) in it stands for a value from the manifest itself, as
// with the kubelet. That a runtime which answers nothing else has not answered within the timeout is
// no context.DeadlineExceeded.
func (ws *Pool) ExecProbe(ctx context.Context, t *probe.Target, command []string, timeout time.Duration) (string, int32, error) {
	command, err := podspec.ExpandStatic(command, t.Container.Env)
	if err != nil {
		return "", 0, err
	}
	answer, err := ws.Cri.ExecSync(ctx, t.ID, command, timeout)
	switch {
	case cri.TooLarge(err):
		return "", 0, &probe.CommandError{Words: cri.TooLargeWords}
	case err != nil && !ws.Watch.Up(): // it answers nothing, so that its silence is not the command's
		return "", 0, errors.New(err.Error())
	case err != nil:
		return "", 0, err
	}
	return string(answer.GetStdout()) + string(answer.GetStderr()), answer.GetExitCode(), nil
}
