// Package elide hides the values of pods' env and HTTP headers in texts, for
// readers who may see the texts but not the values.
package elide

import (
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// Mark replaces hidden text.
const Mark = "<elided>"

// least is the minimum length of a hidden value, in bytes: shorter ones are part
// of many words.
const least = 4

// Values is what some pods have in their env and headers. Any goroutine may use it.
type Values struct{ of []*formsOf }

// formsOf returns the forms in which the values of one pod may stand in a text. They
// are many, and made once.
type formsOf struct{ get func() []string }

// Of returns the values of pods. They must not be changed afterwards.
func Of(pods ...*v1.Pod) *Values {
	v := &Values{}
	for _, p := range pods {
		v.of = append(v.of, &formsOf{sync.OnceValue(func() []string { return allForms(p) })})
	}
	return v
}

// OfTexts returns values that no pod has in its manifest.
func OfTexts(texts []string) *Values {
	return &Values{[]*formsOf{{sync.OnceValue(func() []string { return formsOfAll(texts) })}}}
}

// Join returns all of the values, and shares what was prepared for them.
func Join(all ...*Values) *Values {
	v := &Values{}
	for _, one := range all {
		for _, of := range one.of {
			if !slices.Contains(v.of, of) {
				v.of = append(v.of, of)
			}
		}
	}
	return v
}

// Same reports whether two pods have the same values.
func Same(a, b *v1.Pod) bool {
	return a == b || slices.EqualFunc(containers(a), containers(b), func(a, b v1.Container) bool {
		return slices.EqualFunc(a.Env, b.Env, func(a, b v1.EnvVar) bool {
			return a.Name == b.Name && a.Value == b.Value && (a.ValueFrom == nil) == (b.ValueFrom == nil)
		}) && slices.Equal(headerValues(&a), headerValues(&b))
	})
}

func containers(p *v1.Pod) []v1.Container {
	return slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
}

// Hide returns the text without the values: as the manifest has them, as the
// container gets them, line by line, escaped and quoted in the usual ways, and
// cut off where the text, or one that it quotes, starts or ends.
func (v *Values) Hide(text string) string {
	if text == "" {
		return ""
	}
	m := marks{text: text}
	ends, begins := cuts(text)
	for _, of := range v.of {
		for _, form := range of.get() {
			m.whole(form)
			m.beginnings(form, ends)
			m.endings(form, begins)
		}
	}
	return m.String()
}

// allForms returns the forms of all values of a pod, each once.
func allForms(p *v1.Pod) []string {
	var values []string
	for _, c := range containers(p) {
		values = slices.Concat(values, envValues(c.Env), headerValues(&c))
	}
	return formsOfAll(values)
}

func formsOfAll(values []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, value := range values {
		for _, form := range forms(value) {
			if len(form) >= least && !seen[form] {
				seen[form] = true
				out = append(out, form)
			}
		}
	}
	return out
}

func headerValues(c *v1.Container) []string {
	var asks []*v1.HTTPGetAction
	for _, p := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil {
			asks = append(asks, p.HTTPGet)
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				asks = append(asks, h.HTTPGet)
			}
		}
	}
	var out []string
	for _, a := range asks {
		if a != nil {
			for _, h := range a.HTTPHeaders {
				out = append(out, h.Value)
			}
		}
	}
	return out
}

// cutsMost is how many cuts of a kind count in one text.
const cutsMost = 32

// cuts returns where a value in the text may have lost its end, and where its
// beginning: a text may be cut, and so may one that it quotes.
func cuts(text string) (ends, begins []int) {
	ends, begins = []int{len(text)}, []int{0}
	for _, sep := range []string{"...", "; "} {
		for at := range indexes(text, sep) {
			if ends = append(ends, at); len(ends) >= cutsMost {
				break
			}
		}
	}
	for at := range indexes(text, ": ") {
		if begins = append(begins, at+len(": ")); len(begins) >= cutsMost {
			break
		}
	}
	return ends, begins
}

// marks says which bytes of a text are hidden.
type marks struct {
	text   string
	hidden []bool // nil: none
}

func (m *marks) mark(from, to int) {
	if m.hidden == nil {
		m.hidden = make([]bool, len(m.text))
	}
	for k := from; k < to; k++ {
		m.hidden[k] = true
	}
}

// whole marks a value everywhere in the text.
func (m *marks) whole(value string) {
	for at := range indexes(m.text, value) {
		m.mark(at, at+len(value))
	}
}

// beginnings marks the rest of a value that was cut off at one of the ends.
func (m *marks) beginnings(value string, ends []int) {
	for at := range indexes(m.text, value[:least]) {
		for _, end := range ends {
			if end-at >= least && strings.HasPrefix(value, m.text[at:end]) {
				m.mark(at, end)
			}
		}
	}
}

// endings marks the rest of a value whose beginning was cut off.
func (m *marks) endings(value string, begins []int) {
	for at := range indexes(m.text, value[len(value)-least:]) {
		end := at + least
		for _, begin := range begins {
			if end-begin >= least && strings.HasSuffix(value, m.text[begin:end]) {
				m.mark(begin, end)
			}
		}
	}
}

// String returns the text with one Mark for all that is hidden in a row.
func (m *marks) String() string {
	if m.hidden == nil {
		return m.text
	}
	var b strings.Builder
	for k := range len(m.text) {
		switch {
		case !m.hidden[k]:
			b.WriteByte(m.text[k])
		case k == 0 || !m.hidden[k-1]:
			b.WriteString(Mark)
		}
	}
	return b.String()
}
