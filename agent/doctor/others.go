package doctor

import (
	"context"
	"errors"
	"net"
	"syscall"

	"monopod/agent/checkpoint"
	"monopod/manifests/shell"
)

// endpoint checks whether the agent gets its port.
func endpoint(_ context.Context, m *Machine) []Finding {
	addr := m.Config.Listen
	switch {
	case addr == "":
		return []Finding{ok("the socket %s alone", m.Config.Socket)}
	case m.Up && m.NoTCP:
		return []Finding{ok("the socket %s answers; the agent does not serve %s, as it reports below", m.Config.Socket, addr)}
	case m.Up:
		return []Finding{ok("%s and the socket %s, which answers", addr, m.Config.Socket)}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return []Finding{notServed(addr, err)}
	}
	l.Close()
	return []Finding{ok("%s is free; monopod does not run", addr)}
}

// notServed finds why the endpoint's address cannot be bound. Where it may be later, the agent starts
// without it.
func notServed(addr string, err error) Finding {
	const other = "choose another with --listen"
	host, port, _ := net.SplitHostPort(addr)
	unknown := (*net.DNSError)(nil)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return warn("ss --listening --tcp --numeric --processes "+shell.Word("sport = :"+port)+" names it; or "+other,
			"%s is in use by another program: monopod starts, and serves it once it is free", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return warn(other, "the machine does not have %s: monopod starts, and serves it once it has", addr)
	case errors.As(err, &unknown) && unknown.Name == host: // not of a port
		return warn(other, "the name %s has no address: monopod starts, and serves %s once it has", host, addr)
	}
	return fail(other, "%v", err)
}

// labelUID is the label of a sandbox with the uid of its pod.
const labelUID = "io.kubernetes.pod.uid"

// others looks for agents that may treat this one's pods as unknown.
func others(ctx context.Context, m *Machine) (found []Finding) {
	if pid := checkpoint.Holder(m.Config.Root); pid != "" && !m.Up {
		found = append(found, fail("stop it, or choose another with --root",
			"the root dir %s is in use by process %s, which does not answer at %s", m.Config.Root, pid, m.Config.Socket))
	}
	if m.Kubelet != "" {
		found = append(found, warn("give one of them a --cgroup-root of its own",
			"a kubelet runs, too, as %s: it removes the cgroups under kubepods that it does not know", m.Kubelet))
	}
	theirs := m.theirs(ctx)
	if theirs > 0 {
		found = append(found, warn("", "sandboxes of other agents: %d; monopod leaves them alone, and counts neither their ports nor their memory", theirs))
	}
	return orOK(found, "none")
}

// theirs returns how many sandboxes are of pods of other agents, as far as the runtime says so.
func (m *Machine) theirs(ctx context.Context) (n int) {
	if m.silent != nil {
		return 0
	}
	marks := checkpoint.MarksIn(m.Config.Root)
	all, _ := m.Runtime.Sandboxes(ctx, nil)
	for _, s := range all {
		if s.Labels[labelUID] != "" && !marks.Has(s.Id, s.Labels) {
			n++
		}
	}
	return n
}
