// Package cpus decides which containers get CPUs of their own.
package cpus

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The policies.
const (
	None   = "none"
	Static = "static"
)

// Settings are those of a kubelet.
type Settings struct {
	Policy   string
	Options  map[string]string  // cpuManagerPolicyOptions
	Alpha    bool               // accepts options that a kubelet has only with a feature gate
	Listed   Set                // reservedSystemCPUs; empty: as many as Reserved says are chosen
	Reserved *resource.Quantity // the CPUs that are reserved from pods; nil: not said
}

// options are what the policy options say.
type options struct {
	fullCores   bool // full-pcpus-only
	strict      bool // strict-cpu-reservation
	uncore      bool // prefer-align-cpus-by-uncorecache
	spreadNUMA  bool // distribute-cpus-across-numa
	spreadCores bool // distribute-cpus-across-cores
}

// Policy is checked settings on one machine. It does not change.
type Policy struct {
	m        *Machine
	o        options
	isStatic bool
	reserved Set
	whole    Set // reserved, with all other CPUs of the same cores
}

// NewPolicy returns the policy of the settings. Its errors are a kubelet's: the settings are wrong
// on this machine.
func NewPolicy(m *Machine, s Settings) (*Policy, error) {
	switch s.Policy {
	case None:
		if len(s.Options) > 0 {
			return nil, fmt.Errorf("new none policy error: None policy: received unsupported options=%v", s.Options)
		}
		return &Policy{m: m}, nil
	case Static:
		return newStatic(m, s)
	default:
		return nil, fmt.Errorf("unknown policy: %q", s.Policy)
	}
}

// CheckReserved returns why the static policy runs on no machine with what is reserved; nil: on some
// it does.
func (s *Settings) CheckReserved() error {
	switch {
	case s.Policy != Static:
		return nil
	case s.Reserved == nil:
		return errors.New("[cpumanager] unable to determine reserved CPU resources for static policy")
	case s.Reserved.IsZero():
		return errors.New("[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")
	}
	return nil
}

func newStatic(m *Machine, s Settings) (*Policy, error) {
	if err := s.CheckReserved(); err != nil {
		return nil, err
	}
	o, err := parseOptions(s)
	if err != nil {
		return nil, fmt.Errorf("new static policy error: %w", err)
	}
	p := &Policy{m: m, o: o, isStatic: true}
	if err := p.reserve(s); err != nil {
		return nil, fmt.Errorf("new static policy error: [cpumanager] %w", err)
	}
	return p, nil
}

// reserve chooses the CPUs that are reserved.
func (p *Policy) reserve(s Settings) error {
	n := int((s.Reserved.MilliValue() + 999) / 1000)
	p.reserved = s.Listed
	if len(s.Listed) == 0 {
		p.reserved, _ = take(p.m, p.o, p.m.All(), n)
	}
	if len(p.reserved) != n {
		return fmt.Errorf("unable to reserve the required amount of CPUs (size of %s did not equal %d)", p.reserved, n)
	}
	if unknown := p.reserved.Minus(p.m.All()); len(unknown) > 0 {
		return fmt.Errorf("unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: %d", unknown[0])
	}
	p.whole = p.m.cores(p.reserved)
	return nil
}

// Reserved returns the CPUs that no container has for its own.
func (p *Policy) Reserved() Set { return p.reserved }

// Allocatable returns the CPUs that containers can have for their own.
func (p *Policy) Allocatable() Set { return p.m.All().Minus(p.reserved) }

// IsStatic reports whether containers can have CPUs of their own.
func (p *Policy) IsStatic() bool { return p.isStatic }

// alpha are the options that a kubelet has only with a feature gate.
var alpha = []string{"align-by-socket", "distribute-cpus-across-cores"}

// conflicts are the options that exclude each other, in the order of a kubelet's check.
var conflicts = [][2]string{
	{"full-pcpus-only", "distribute-cpus-across-cores"},
	{"distribute-cpus-across-numa", "distribute-cpus-across-cores"},
	{"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"},
	{"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"},
}

// CheckOption checks one policy option by itself.
func CheckOption(name, value string) error {
	_, err := parseOptions(Settings{Options: map[string]string{name: value}})
	return err
}

func parseOptions(s Settings) (o options, err error) {
	// Places of all options but align-by-socket: it means nothing without hints of the topology.
	places := map[string]*bool{"full-pcpus-only": &o.fullCores, "strict-cpu-reservation": &o.strict, "prefer-align-cpus-by-uncorecache": &o.uncore,
		"distribute-cpus-across-numa": &o.spreadNUMA, "distribute-cpus-across-cores": &o.spreadCores}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		if slices.Contains(alpha, name) && !s.Alpha {
			return o, fmt.Errorf("CPU Manager Policy Alpha-level Options not enabled, but option %q provided", name)
		}
		place := places[name]
		if place == nil {
			return o, fmt.Errorf("unknown CPU Manager Policy option: %q", name)
		}
		*place, err = strconv.ParseBool(s.Options[name])
		if err != nil {
			return o, fmt.Errorf("bad value for option %q: %w", name, err)
		}
	}
	for _, c := range conflicts {
		if *places[c[0]] && *places[c[1]] {
			return o, fmt.Errorf("static policy options %s and %s can not be used at the same time", c[0], c[1])
		}
	}
	return o, nil
}
