package manifests

import "testing"

func TestTheUpdateAnnotation(t *testing.T) {
	for _, row := range []struct{ name, annotations, want string }{
		{"none", "{a: b}", ""},
		{"stop first", "{monopod.update: stop-first}", ""},
		{"prepare", "{monopod.update: prepare}", ""},
		{"another", "{monopod.update: later}", `4:34 metadata.annotations[monopod.update]: Unsupported value: "later": supported values: "prepare", "stop-first"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:  " + row.annotations + "\n  name: a\nspec: {containers: [{name: c, image: i}]}\n"
			_, problems := Decode("/m/x.yaml", []byte(text), node1)
			if got := words(problems); got != row.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, row.want)
			}
		})
	}
}
