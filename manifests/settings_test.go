package manifests

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/decode"
)

func TestReadSettings(t *testing.T) {
	type inner struct {
		Wait *metav1.Duration `json:"wait"`
	}
	type settings struct {
		Name  *string           `json:"name"`
		Many  *int64            `json:"many"`
		Map   map[string]string `json:"things"`
		Inner *inner            `json:"inner"`
	}
	for _, row := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"only comments", "# a\n---\n# b\n", ""},
		{"values", "name: a\nmany: 3\nthings: {a.b: c}\ninner: {wait: 3s}\n", ""},
		{"JSON", `{"name": "a", "inner": {"wait": "3s"}}`, ""},
		{"null leaves a field alone", "many: null\n", ""},
		{"an unknown field, and what it may mean", "many: 2\nnmae: b\n", `2:1 nmae: unknown field "nmae": did you mean "name"?`},
		{"an unknown field inside", "inner:\n  wiat: 3s\n", `2:3 inner.wiat: unknown field "wiat": did you mean "wait"?`},
		{"an unknown field like no other", "zebra: 3\n", `1:1 zebra: unknown field "zebra"`},
		{"a field twice", "name: a\nname: b\n", `2:1 name: duplicate field "name": it stands on line 1 already`},
		{"a value that does not fit is not judged", "many: lots\n", `1:7 many: expected a number (int64), got a string ("lots")`},
		{"a value that is wrong", "---\n# first\nmany: 99\n", "3:7 many: too many"},
		{"a value of a map that is wrong", "things:\n  ok: x\n  a.b: bad\n", "3:8 things[a.b]: bad"},
		{"no duration", "inner:\n  wait: soon\n", `2:9 inner.wait: expected a duration such as 10s or 5m, got a string ("soon")`},
		{"no object", "- a\n", "1:1 : expected settings by name, got a list"},
		{"no YAML", "name: [\n", "1:1 : not valid YAML: did not find expected node content"},
		{"two documents", "name: a\n---\nname: b\n", "3:1 : a second document: settings are one"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out settings
			s := decode.ReadSettings("f.yaml", []byte(row.text), &out)
			if out.Many != nil {
				if *out.Many != 3 && *out.Many != 2 {
					s.Refuse("many", "too %s", "many")
				}
			}
			if out.Map["a.b"] == "bad" {
				s.Refuse("things[a.b]", "bad")
			}
			if got := words(s.Problems()); got != row.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, row.want)
			}
		})
	}
}
