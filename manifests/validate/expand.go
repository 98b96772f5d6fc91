package validate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"monopod/manifests/decode"
)

// sizer computes the length of a container's expanded texts without expanding them. Values that are
// known only at the start of the container, such as an address, count as empty: the lengths are
// checked again then.
type sizer struct {
	values map[string]int // length of each variable's value
	all    int            // of environment, command and args
}

// of returns the length of an expanded text; if it is more than MaxString, any larger number.
func (s *sizer) of(text string) int {
	n := 0
	for p := range decode.Pieces(text) {
		if size, known := s.values[p.Name]; p.Ref && known {
			n += size
		} else {
			n += len(p.Text)
		}
		if n > decode.MaxString {
			break
		}
	}
	return n
}

// add counts a string by its size and subtracts that of a string that it replaces. It returns an
// error beyond the limit.
func (s *sizer) add(size, replaced int) error {
	s.all += size - replaced
	if size > decode.MaxString {
		return decode.ErrLongString
	}
	if s.all > decode.MaxStrings {
		return decode.ErrLongStrings
	}
	return nil
}

// expansions checks the lengths of a container's expanded texts, up to the first that is too long.
func (c *checker) expansions(p *field.Path, ct *v1.Container) {
	s := &sizer{values: map[string]int{}}
	for i, e := range ct.Env {
		old, again := s.values[e.Name]
		if again {
			old += len(e.Name) + 2
		}
		s.values[e.Name] = s.of(e.Value)
		if c.tooLong(p.Child("env").Index(i).Child("value"), s.add(len(e.Name)+s.values[e.Name]+2, old)) {
			return
		}
	}
	for _, of := range []struct {
		name string
		list []string
	}{{"command", ct.Command}, {"args", ct.Args}} {
		for i, text := range of.list {
			if c.tooLong(p.Child(of.name).Index(i), s.add(s.of(text)+1, 0)) {
				return
			}
		}
	}
	for i := range ct.VolumeMounts {
		if s.of(ct.VolumeMounts[i].SubPathExpr) >= decode.MaxSubPath {
			c.tooLong(p.Child("volumeMounts").Index(i).Child("subPathExpr"), decode.ErrLongSubPath)
			return
		}
	}
	c.probeExpansions(p, ct)
}

// probeExpansions checks the commands of probes, in which variables have the values that the
// manifest itself gives.
func (c *checker) probeExpansions(p *field.Path, ct *v1.Container) {
	values := map[string]int{}
	for _, e := range ct.Env {
		if e.ValueFrom == nil {
			values[e.Name] = len(e.Value)
		}
	}
	for _, probe := range []struct {
		name string
		*v1.Probe
	}{{"livenessProbe", ct.LivenessProbe}, {"readinessProbe", ct.ReadinessProbe}, {"startupProbe", ct.StartupProbe}} {
		if probe.Probe == nil || probe.Exec == nil {
			continue
		}
		s := &sizer{values: values}
		for i, text := range probe.Exec.Command {
			if c.tooLong(p.Child(probe.name, "exec", "command").Index(i), s.add(s.of(text)+1, 0)) {
				return
			}
		}
	}
}

// tooLong adds an error, and reports whether there is one.
func (c *checker) tooLong(p *field.Path, err error) bool {
	if err != nil {
		c.refuse(p, err.Error()) // one of package decode's errors
	}
	return err != nil
}
