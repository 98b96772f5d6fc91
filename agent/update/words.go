package update

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The words for differences without their values.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
	none    = "unset"
)

// secretive matches texts that may have a secret in them.
var secretive = regexp.MustCompile(`(?i)passw|secret|token|credential|api-?key|private-?key|://[^/ ]*:[^/ ]*@`)

// change returns a text about two values, of which one may be missing. It omits values that may be
// secret.
func change(p place, a, b reflect.Value) string {
	x, y := p.text(a), p.text(b)
	mute := p.name == "HTTPHeader.Value" || p.path == "metadata.annotations["+v1.LastAppliedConfigAnnotation+"]"
	if mute || p.name != "Container.Image" && secretive.MatchString(x+" "+y+" "+p.path) {
		switch none {
		case x:
			return added
		case y:
			return removed
		}
		return changed
	}
	return shorten(x, y)
}

// text returns a value; the empty text of a field counts as none.
func (p place) text(v reflect.Value) string {
	if p.name != "" && v.Kind() == reflect.String && v.Len() == 0 {
		return none
	}
	return text(v)
}

// isAggregate reports whether a type is a struct that is more than one value.
func isAggregate(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return false
	}
	return t.Kind() == reflect.Struct
}

// text returns one value as a manifest has it, on one line.
func text(v reflect.Value) string {
	if !v.IsValid() {
		return none
	}
	switch one := v.Interface().(type) {
	case resource.Quantity:
		return one.String()
	case intstr.IntOrString:
		if one.Type == intstr.Int {
			return strconv.Itoa(one.IntValue())
		}
		return quote(one.StrVal)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return none
		}
		return text(v.Elem())
	case reflect.String:
		return quote(v.String())
	case reflect.Slice:
		if v.Len() == 0 {
			return none
		}
	}
	return plainJSON(v.Interface())
}

// plainJSON returns JSON for people: <, > and & are not escaped.
func plainJSON(v any) string {
	var out strings.Builder
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func quote(s string) string { return strconv.QuoteToGraphic(s) }

func portWords(all []v1.ContainerPort) string {
	var out []string
	for _, p := range all {
		word := strings.TrimSpace(fmt.Sprintf("%s %d/%s", p.Name, p.ContainerPort, p.Protocol))
		if p.HostPort > 0 {
			word += strings.TrimRight(fmt.Sprintf(" at host port %d of %s", p.HostPort, p.HostIP), "of ")
		}
		out = append(out, word)
	}
	return cmp.Or(strings.Join(out, ", "), none)
}

const (
	most = 48 // characters of a value that are shown
	lead = 12 // of these, before the first that differs
)

// shorten returns a text of two values; of long ones the part in which they differ.
func shorten(a, b string) string {
	x, y := []rune(a), []rune(b)
	common := 0
	for common < min(len(x), len(y)) && x[common] == y[common] {
		common++
	}
	return part(x, common) + " -> " + part(y, common)
}

func part(s []rune, differs int) string {
	from := max(min(differs-lead, len(s)-most), 0)
	out := string(s[from:min(from+most, len(s))])
	if from > 0 {
		out = "…" + out
	}
	if from+most < len(s) {
		out += "…"
	}
	return out
}
