package support

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"monopod/agent/message"
	"monopod/manifests"
)

// Mark replaces what is hidden.
const Mark = message.Mark

// leastValue is the length of the shortest values that are looked for in texts: shorter ones are
// also words of other meaning.
const leastValue = 6

// Secrets are values that no text of an archive may quote. The zero value has none.
type Secrets struct {
	values   map[string]string // what replaces each form of a value
	replacer *strings.Replacer // of the values; nil: to be built
	longest  int               // the bytes of the longest form
}

// Add adds a value and its lines, in the forms that texts quote them in.
func (s *Secrets) Add(value string) {
	s.add(value)
	for line := range strings.Lines(value) {
		s.add(line)
	}
}

// add adds all forms of one value, with the space around it and without.
func (s *Secrets) add(value string) {
	trimmed := strings.TrimSpace(value)
	if len(trimmed) < leastValue {
		return
	}
	forms := []string{trimmed, url.QueryEscape(trimmed), url.PathEscape(trimmed), percents(trimmed)}
	for _, form := range slices.Concat(forms, quoted(trimmed), encoded(value), encoded(trimmed)) {
		s.replace(form, Mark)
	}
}

func (s *Secrets) replace(text, by string) {
	if s.values == nil {
		s.values = map[string]string{}
	}
	s.values[text] = by
	s.longest = max(s.longest, len(text))
	s.replacer = nil
}

// percents returns a value with all but letters and digits as URLs may have it.
func percents(value string) string {
	var out strings.Builder
	for _, b := range []byte(value) {
		if b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

// quoted returns a value as JSON, with and without escapes for HTML, and Go have it between quotes.
func quoted(value string) []string {
	html, _ := json.Marshal(value) // a string always marshals
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(value)
	all := []string{string(html), strings.TrimSpace(plain.String()), strconv.Quote(value)}
	for i, text := range all {
		all[i] = text[1 : len(text)-1]
	}
	return all
}

// encoded returns a value as each variant of base64 has it.
func encoded(value string) (all []string) {
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, e.EncodeToString([]byte(value)))
	}
	return all
}

// AddObject adds the values of a ConfigMap or Secret, and the parts of a Secret's values.
func (s *Secrets) AddObject(o *manifests.Object) {
	if m := o.ConfigMap; m != nil {
		for _, value := range m.Data {
			s.Add(value)
		}
		for _, value := range m.BinaryData {
			s.Add(string(value))
		}
	}
	if m := o.Secret; m != nil {
		for _, value := range m.Data {
			s.addSecret(string(value))
		}
		for _, value := range m.StringData {
			s.addSecret(value)
		}
	}
}

// addSecret adds a value of a Secret and its parts: what stands behind a name in its lines, and,
// if it is JSON, such as the credentials of a registry, its strings.
func (s *Secrets) addSecret(value string) {
	s.Add(value)
	for line := range strings.Lines(value) {
		if at := strings.IndexAny(line, "=:"); at >= 0 {
			s.add(strings.Trim(strings.TrimSpace(line[at+1:]), `"'`))
		}
	}
	var content any
	if json.Unmarshal([]byte(value), &content) == nil {
		s.addStrings(content)
	}
}

// addStrings adds the strings of decoded JSON.
func (s *Secrets) addStrings(content any) {
	switch content := content.(type) {
	case string:
		s.Add(content)
	case []any:
		for _, one := range content {
			s.addStrings(one)
		}
	case map[string]any:
		for _, one := range content {
			s.addStrings(one)
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
	if s.replacer == nil {
		s.replacer = s.build()
	}
	return s.replacer.Replace(text)
}

func (s *Secrets) build() *strings.Replacer {
	texts := slices.SortedFunc(maps.Keys(s.values), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, text := range texts {
		pairs = append(pairs, text, s.values[text])
	}
	return strings.NewReplacer(pairs...)
}
