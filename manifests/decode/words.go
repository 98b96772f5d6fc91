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

// wanted describes what the types that parse JSON themselves expect.
var wanted = map[reflect.Type]string{
	quantityType:                          "a quantity such as 500m, 2 or 1Gi",
	reflect.TypeFor[intstr.IntOrString](): "a number (int32) or a string",
	reflect.TypeFor[metav1.Time]():        `a time such as "2006-01-02T15:04:05Z"`,
	reflect.TypeFor[metav1.MicroTime]():   `a time such as "2006-01-02T15:04:05Z"`,
	reflect.TypeFor[metav1.Duration]():    "a duration such as 10s or 5m",
}

// noBase64 is the message for invalid bytes; Secrets have them in data and ConfigMaps in
// binaryData. It quotes nothing: text that is not base64 is most likely the value itself.
const noBase64 = `not valid base64: write plain text under stringData (of a Secret) or data (of a ConfigMap) instead, or encode the value with "base64 -w0"`

// misfit describes what a type expects and what it got.
func misfit(t reflect.Type, n *yaml.Node) Message {
	if t == reflect.TypeFor[[]byte]() && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		return Fixed(noBase64)
	}
	want, hint, plain := wanted[t], "", ""
	switch kind := t.Kind(); {
	case want != "":
	case kind == reflect.String:
		want = "a string"
		if n.Kind == yaml.ScalarNode {
			hint, plain = fmt.Sprintf(": put it in quotes, %q", Clip(n.Value)), ": put it in quotes"
		}
	case kind == reflect.Bool:
		want = "true or false"
	case t == reflect.TypeFor[[]byte]():
		want = "text in base64"
	case kind == reflect.Slice:
		want = "a list"
	case kind == reflect.Int, kind == reflect.Int32, kind == reflect.Int64:
		want = fmt.Sprintf("a number (%s)", kind)
		if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" {
			return Message{fmt.Sprintf("expected %s, %s is too large or not whole", want, Clip(n.Value)), "expected " + want + ", got one that is too large or not whole"}
		}
	default:
		want = "an object"
	}
	got := Got("expected "+want, n)
	return Message{got.Full + hint, got.Plain + plain}
}

// Got describes a node where something else is expected, as in "expected a list, got ...".
func Got(wanted string, n *yaml.Node) Message {
	got := wanted + ", got "
	return Message{got + describe(n), got + typeOf(n)}
}

// describe returns the type of a node, with its value.
func describe(n *yaml.Node) string {
	switch what := typeOf(n); what {
	case "a boolean", "a number":
		return what + " (" + Clip(n.Value) + ")"
	case "a string":
		return what + " (" + strconv.Quote(Clip(n.Value)) + ")"
	default:
		return what
	}
}

// typeOf returns the type of a node in words.
func typeOf(n *yaml.Node) string {
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
		return "a boolean"
	case "!!int", "!!float":
		return "a number"
	}
	return "a string"
}

// Clip shortens a value for a message.
func Clip(s string) string { return clipAt(s, 60) }

func clipAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
