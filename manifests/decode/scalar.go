package decode

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
)

const quotedStyles = yaml.TaggedStyle | yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// scalar returns what a scalar node means: nil, bool, int64, uint64, float64
// or string. Plain scalars mean what they mean to the kubelet, whose YAML is
// version 1.1: yes, no, on, off, y and n are booleans, 0644 is octal. Times
// are strings.
func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		if b, ok := boolean(n.Value); ok {
			return b
		}
	case "!!int":
		return integer(n.Value)
	case "!!float":
		return float(n.Value)
	case "!!binary":
		if b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), "")); err == nil {
			return string(b)
		}
	case "!!str":
		if n.Style&quotedStyles == 0 {
			if b, ok := boolean(n.Value); ok {
				return b
			}
		}
	}
	return n.Value
}

// boolean reads the booleans of YAML 1.1.
func boolean(s string) (value, ok bool) {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

func integer(s string) any {
	plain := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return u
	}
	return float(s)
}

func float(s string) any {
	plain := strings.ReplaceAll(s, "_", "")
	switch strings.ToLower(strings.TrimLeft(plain, "+-")) {
	case ".inf":
		return math.Inf(1 - 2*strings.Count(plain, "-"))
	case ".nan":
		return math.NaN()
	}
	if f, err := strconv.ParseFloat(plain, 64); err == nil {
		return f
	}
	return s
}

// IsNull reports whether a node has no value: null, ~ or no value at all.
func IsNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// keyText returns a mapping's key as JSON would have it; false if the key is
// a collection or null. The key "on" is a boolean and becomes "true".
func keyText(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		return "", false
	}
	switch k := scalar(n).(type) {
	case string:
		return k, true
	case bool:
		return strconv.FormatBool(k), true
	case int64:
		return strconv.FormatInt(k, 10), true
	case uint64:
		return strconv.FormatUint(k, 10), true
	case float64:
		return strconv.FormatFloat(k, 'g', -1, 64), true
	}
	return "", false
}

// Describe names what a node is, for "expected a list, got ...".
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch v := scalar(n).(type) {
	case nil:
		return "nothing"
	case bool:
		return "a boolean (" + Clip(n.Value) + ")"
	case string:
		return "a string (" + strconv.Quote(Clip(v)) + ")"
	}
	return "a number (" + Clip(n.Value) + ")"
}

// Clip keeps a value short enough for a message.
func Clip(s string) string { return clipAt(s, 60) }

func clipAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// ParseQuantity reads a quantity such as 500m or 1Gi. It refuses those that
// the arithmetic of quantities cannot bear: it writes numbers out, so that
// 1e-999999999 takes hours and gigabytes.
func ParseQuantity(text string) (resource.Quantity, error) {
	if !bearable(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

// bearable reports whether a quantity has at most 64 characters and an exponent of at
// most two digits. The largest that means anything is 9.2e18.
func bearable(text string) bool {
	if len(text) > 64 {
		return false
	}
	at := strings.LastIndexAny(text, "eE")
	return at < 0 || len(strings.TrimLeft(text[at+1:], "+-0")) <= 2
}
