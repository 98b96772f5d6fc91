package decode

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// wanted says what the types that read JSON themselves want.
var wanted = map[reflect.Type]string{
	quantityType:                          "a quantity such as 500m, 2 or 1Gi",
	reflect.TypeFor[intstr.IntOrString](): "a number (int32) or a string",
	reflect.TypeFor[metav1.Time]():        `a time such as "2006-01-02T15:04:05Z"`,
	reflect.TypeFor[metav1.MicroTime]():   `a time such as "2006-01-02T15:04:05Z"`,
	reflect.TypeFor[metav1.Duration]():    "a duration such as 10s or 5m",
	reflect.TypeFor[[]byte]():             "text in base64",
}

// misfit says what a type wants and what it got.
func misfit(t reflect.Type, n *yaml.Node) string {
	want, hint := wanted[t], ""
	switch kind := t.Kind(); {
	case want != "":
	case kind == reflect.String:
		want = "a string"
		if n.Kind == yaml.ScalarNode {
			hint = fmt.Sprintf(": put it in quotes, %q", Clip(n.Value))
		}
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.Slice:
		want = "a list"
	case kind == reflect.Int, kind == reflect.Int32, kind == reflect.Int64:
		want = fmt.Sprintf("a number (%s)", kind)
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" {
			return fmt.Sprintf("expected %s, %s is too large or not whole", want, Clip(n.Value))
		}
	default:
		want = "an object"
	}
	return fmt.Sprintf("expected %s, got %s%s", want, Describe(n), hint)
}

// Describe names what a node is, for "expected a list, got ...".
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "a boolean (" + Clip(n.Value) + ")"
	case "!!int", "!!float":
		return "a number (" + Clip(n.Value) + ")"
	}
	return "a string (" + strconv.Quote(Clip(n.Value)) + ")"
}

// Clip keeps a value short enough for a message.
func Clip(s string) string { return clipAt(s, 60) }

func clipAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
