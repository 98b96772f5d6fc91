package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// misfit says what a field wants and what it got.
func misfit(v reflect.Value, n *yaml.Node) string {
	want, hint := "an object", ""
	switch v.Kind() {
	case reflect.String:
		want = "a string"
		if n.Kind == yaml.ScalarNode {
			hint = fmt.Sprintf(": put it in quotes, %q", Clip(n.Value))
		}
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "a list"
	case reflect.Int, reflect.Int32, reflect.Int64:
		want = fmt.Sprintf("a number (%s)", v.Kind())
		if n.Kind == yaml.ScalarNode && isNumber(n) {
			return fmt.Sprintf("expected a number (%s), %s is too large or not whole", v.Kind(), Clip(n.Value))
		}
	}
	return fmt.Sprintf("expected %s, got %s%s", want, Describe(n), hint)
}

// customMisfit is misfit for the types that read JSON themselves.
func customMisfit(u json.Unmarshaler, n *yaml.Node) string {
	want := "another value"
	switch u.(type) {
	case *resource.Quantity:
		want = "a quantity such as 500m, 2 or 1Gi"
	case *intstr.IntOrString:
		want = "a number (int32) or a string"
	case *metav1.Time, *metav1.MicroTime:
		want = `a time such as "2006-01-02T15:04:05Z"`
	case *metav1.Duration:
		want = "a duration such as 10s or 5m"
	}
	return fmt.Sprintf("expected %s, got %s", want, Describe(n))
}

func isNumber(n *yaml.Node) bool {
	switch scalar(n).(type) {
	case int64, uint64, float64:
		return true
	}
	return false
}

// Nearest returns the known name that a misspelt one most likely means; "" if none is near.
func Nearest[V any](name string, known map[string]V) string {
	best, bestDistance := "", max(2, min(len(name)/4, 4))+1
	if len(name) > 60 {
		return ""
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if d := Distance(strings.ToLower(name), strings.ToLower(k)); d < bestDistance && d < len(k) {
			best, bestDistance = k, d
		}
	}
	return best
}

// Distance is the Levenshtein distance in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
