package manifests

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"monopod/manifests/decode"
)

func TestBackOffAnnotations(t *testing.T) {
	const first, most = "metadata.annotations[monopod.backoff-first]", "metadata.annotations[monopod.backoff-max]"
	bad := ": must be a duration from 100ms to 24h, such as 10s or 5m"
	for _, row := range []struct{ name, annotations, want string }{
		{"none", "{a: b}", ""},
		{"both", "{monopod.backoff-first: 500ms, monopod.backoff-max: 1m}", ""},
		{"the same", "{monopod.backoff-first: 10s, monopod.backoff-max: 10s}", ""},
		{"the first alone, longer than any node's", "{monopod.backoff-first: 1h}", ""},
		{"the longest alone, shorter than any node's", "{monopod.backoff-max: 1s}", ""},
		{"no unit", "{monopod.backoff-first: '10'}", `4:41 ` + first + `: Invalid value: "10"` + bad},
		{"empty", "{monopod.backoff-max: ''}", `4:18 ` + most + `: Invalid value: ""` + bad},
		{"nothing at all", "{monopod.backoff-first: 0s}", `4:41 ` + first + `: Invalid value: "0s"` + bad},
		{"too short", "{monopod.backoff-first: 99ms}", `4:41 ` + first + `: Invalid value: "99ms"` + bad},
		{"negative", "{monopod.backoff-max: -1m}", `4:39 ` + most + `: Invalid value: "-1m"` + bad},
		{"too long", "{monopod.backoff-max: 25h}", `4:39 ` + most + `: Invalid value: "25h"` + bad},
		{"the wrong way round", "{monopod.backoff-first: 2m, monopod.backoff-max: 1m}", `4:41 ` + first + `: Invalid value: "2m": must not be longer than monopod.backoff-max`},
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

// A pod from a checkpoint may carry what no manifest may say.
func TestBackOffThatMakesNoSenseIsNone(t *testing.T) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{decode.AnnotationBackOffFirst: "never", decode.AnnotationBackOffMax: "90s"}}}
	if first, most := decode.BackOff(p); first != 0 || most != 90*time.Second {
		t.Errorf("got %s, %s", first, most)
	}
}
