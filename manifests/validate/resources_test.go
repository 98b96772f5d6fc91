package validate_test

import (
	"strings"
	"testing"

	"monopod/manifests/documents"
)

func TestQuantitiesOfNoUseAreRefused(t *testing.T) {
	for _, row := range []struct{ limits, problem string }{
		{"cpu: '1e-999999999'", `spec.containers[0].resources.limits[cpu]: expected a quantity such as 500m, 2 or 1Gi, got a string ("1e-999999999")`},
		{"memory: '1e999'", `spec.containers[0].resources.limits[memory]: expected a quantity`},
		{"memory: '" + strings.Repeat("9", 1<<20) + "'", `spec.containers[0].resources.limits[memory]: expected a quantity`},
		{"memory: " + strings.Repeat("9", 1<<20), `spec.containers[0].resources.limits[memory]: expected a quantity`},
		{"hugepages-1e-999999999: 1Gi, cpu: 1", `spec.containers[0].resources.limits[hugepages-1e-999999999]: Invalid value: "1Gi": must be a multiple`},
		{"cpu: 1e3, memory: '1E'", ""},
		{"cpu: '1e03', memory: 0.5e10", ""},
	} {
		file := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i, resources: {limits: {" + row.limits + "}}}]}\n"
		_, problems := documents.Decode("/m/x.yaml", []byte(file), node1)
		got := ""
		if len(problems) > 0 {
			got = problems[0].Field + ": " + problems[0].Message
		}
		if !strings.HasPrefix(got, row.problem) || (got == "") != (row.problem == "") {
			t.Errorf("%.60s: got %q", row.limits, got)
		}
	}
	_, problems := documents.Decode("/m/x.yaml", []byte(podYAML("a", "volumes: [{name: v, emptyDir: {medium: HugePages-1e-999999999}}]")), node1)
	if !strings.Contains(words(problems), "spec.volumes[0].emptyDir.medium: Invalid value") {
		t.Errorf("medium: %s", words(problems))
	}
}
