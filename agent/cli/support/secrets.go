package support

import (
	"cmp"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/manifests"
)

// Mark replaces what is hidden.
const Mark = message.Mark

// The shortest values that are looked for in texts: shorter ones are also words of other meaning,
// and a line of a longer value is its own only if it has some length.
const (
	leastValue = 6
	leastLine  = 12
)

// Secrets are values that no text of an archive may quote. The zero value has none.
type Secrets struct{ values []string }

// Add adds a value, its lines, and both as base64 has them.
func (s *Secrets) Add(value string) {
	value = strings.TrimSpace(value)
	s.add(value, leastValue)
	for line := range strings.Lines(value) {
		s.add(strings.TrimSpace(line), leastLine)
	}
}

func (s *Secrets) add(value string, least int) {
	if len(value) >= least {
		s.values = append(s.values, value, base64.StdEncoding.EncodeToString([]byte(value)))
	}
}

// AddObject adds the values of a ConfigMap or Secret.
func (s *Secrets) AddObject(o *manifests.Object) {
	if m := o.ConfigMap; m != nil {
		for _, value := range m.Data {
			s.Add(value)
		}
	}
	if m := o.Secret; m != nil {
		for _, value := range m.Data {
			s.Add(string(value))
		}
		for _, value := range m.StringData {
			s.Add(value)
		}
	}
}

// AddPod adds the values of the variables and headers of a pod.
func (s *Secrets) AddPod(p *v1.Pod) {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, e := range c.Env {
			s.Add(e.Value)
		}
		for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil {
				s.addHeaders(probe.HTTPGet)
			}
		}
		if c.Lifecycle != nil {
			s.addHook(c.Lifecycle.PostStart)
			s.addHook(c.Lifecycle.PreStop)
		}
	}
}

func (s *Secrets) addHook(h *v1.LifecycleHandler) {
	if h != nil {
		s.addHeaders(h.HTTPGet)
	}
}

func (s *Secrets) addHeaders(a *v1.HTTPGetAction) {
	if a == nil {
		return
	}
	for _, h := range a.HTTPHeaders {
		s.Add(h.Value)
	}
}

// Hide returns a text with each of the values replaced, the longest first.
func (s *Secrets) Hide(text string) string {
	slices.SortFunc(s.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	s.values = slices.Compact(s.values)
	var pairs []string
	for _, value := range s.values {
		pairs = append(pairs, value, Mark)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Where a configuration has what may be a secret: the values of keys that are named so, in lines of
// TOML and YAML and anywhere in JSON, and the user of a URL.
var secretPlaces = []*regexp.Regexp{
	regexp.MustCompile(`(?im)^(\s*"?[\w.-]*` + secretNames + `[\w.-]*"?\s*[:=]\s*)[^\s{\[].*$`),
	regexp.MustCompile(`(?i)("[\w.-]*` + secretNames + `[\w.-]*"\s*:\s*)"(?:[^"\\]|\\.)*"`),
	regexp.MustCompile(`(?i)([\w.-]*` + secretNames + `[\w.-]*\s*=\s*)"(?:[^"\\]|\\.)*"`),
	regexp.MustCompile(`(\w://)[^/\s"@]+@`),
}

const secretNames = `(?:password|passwd|secret|token|auth|credential|key)`

// HideConfig returns the text of a configuration file without what may be a secret.
func HideConfig(text string) string {
	for _, place := range secretPlaces {
		text = place.ReplaceAllString(text, "${1}"+Mark)
	}
	return text
}
