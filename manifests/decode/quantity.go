package decode

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

var quantityType = reflect.TypeFor[resource.Quantity]()

// ParseQuantity parses a quantity such as 500m or 1Gi. It refuses those that the arithmetic of
// quantities cannot handle: it writes numbers out in full, so that 1e-999999999 takes hours and
// gigabytes.
func ParseQuantity(text string) (resource.Quantity, error) {
	if !bearable(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

// bearable reports whether a quantity has at most 64 characters and an exponent of at most two
// digits. The largest useful quantity is 9.2e18.
func bearable(text string) bool {
	if len(text) > 64 {
		return false
	}
	at := strings.LastIndexAny(text, "eE")
	return at < 0 || len(strings.TrimLeft(text[at+1:], "+-0")) <= 2
}
