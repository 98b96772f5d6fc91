package decode_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/decode"
	"monopod/manifests/documents/documenttest"
)

func TestReadSettings(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"only comments", "# a\n---\n# b\n", ""},
		{"values", "name: a\nmany: 3\nthings: {a.b: c}\ninner: {wait: 3s}\n", ""},
		{"JSON", `{"name": "a", "inner": {"wait": "3s"}}`, ""},
		{"null leaves a field alone", "many: null\n", ""},
		{"an unknown field, and what it may mean", "many: 2\nnmae: b\n", `2:1 : unknown field: did you mean "name"?`},
		{"an unknown field inside", "inner:\n  wiat: 3s\n", `2:3 inner: unknown field: did you mean "wait"?`},
		{"an unknown field like no other", "zebra: 3\n", `1:1 : unknown field`},
		{"a field twice", "name: a\nname: b\n", `2:1 name: duplicate field: it stands on line 1 already`},
		{"a value that does not fit is not judged", "many: lots\n", `1:7 many: expected a number (int64), got a string`},
		{"a value that is wrong", "---\n# first\nmany: 99\n", "3:7 many: too many"},
		{"a value of a map that is wrong", "things:\n  ok: x\n  a.b: bad\n", "3:8 things: bad"},
		{"null for a type that reads JSON itself", "seen: null\n", ""},
		{"a value for it", "seen: [1]\n", "1:1 seen: given"},
		{"an object that is null", "inner: null\n", ""},
		{"an object that is none", "inner: 3\n", "1:8 inner: expected an object, got a number"},
		{"no duration", "inner:\n  wait: soon\n", `2:9 inner.wait: expected a duration such as 10s or 5m, got a string`},
		{"no object", "- a\n", "1:1 : expected settings by name, got a list"},
		{"no YAML", "name: [\n", "1:1 : not valid YAML: did not find expected node content"},
		{"two documents", "name: a\n---\nname: b\n", "3:1 : a second document: settings are one"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var name *string
			var many *int64
			var things map[string]string
			var wait *metav1.Duration
			var seen given
			s := decode.ReadSettings("f.yaml", []byte(row.text), decode.Fields{"name": &name, "many": &many, "things": &things, "seen": &seen, "inner": decode.Fields{"wait": &wait}})
			if many != nil {
				if *many != 3 && *many != 2 {
					s.Refuse("many", "too many")
				}
			}
			if seen {
				s.Refuse("seen", "given")
			}
			if things["a.b"] == "bad" {
				s.Refuse("things[a.b]", "bad")
			}
			if got := documenttest.Words(s.Problems()); got != row.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, row.want)
			}
			if row.name == "values" && (*name != "a" || *many != 3 || things["a.b"] != "c" || wait.Seconds() != 3) {
				t.Errorf("name %q, many %d, things %v, wait %s", *name, *many, things, wait)
			}
		})
	}
}

// given is true once there is a value.
type given bool

func (g *given) UnmarshalJSON([]byte) error {
	*g = true
	return nil
}
