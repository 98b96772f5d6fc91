package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"monopod/manifests/decode"
	"monopod/manifests/documents"
)

// doubled declares variables that are each twice the one before.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString("    - {name: A0, value: 0123456789abcdef}\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "    - {name: A%d, value: $(A%d)$(A%d)}\n", i, i-1, i-1)
	}
	return b.String()
}

func TestExpansionsHaveBounds(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n    image: i\n"
	env := "    env:\n" + doubled(12) // A12 is 64 KiB
	const long = ": longer than 128 KiB once its variables are expanded"
	for _, row := range []struct{ name, text, problem string }{
		{"64 KiB", env, ""},
		{"doubling", "    env:\n" + doubled(40), "22:26 spec.containers[0].env[13].value" + long},
		{"a plain value", "    env: [{name: A, value: " + strings.Repeat("x", 128<<10) + "}]\n", "8:28 spec.containers[0].env[0].value" + long},
		{"a command", "    command: [sh, $(A12)$(A12)]\n" + env, "8:19 spec.containers[0].command[1]" + long},
		{"an argument", "    args: [$(A12)x$(A12)]\n" + env, "8:12 spec.containers[0].args[0]" + long},
		{"many arguments", "    args: [" + strings.Repeat("$(A12), ", 16) + "]\n" + env, "8:116 spec.containers[0].args[13]: environment, command and args are larger than 1 MiB in all"},
		{"many variables", env + strings.Repeat("    - {name: B, value: $(A12)}\n", 3) + numbered("    - {name: C%d, value: $(A12)}\n", 16),
			"37:26 spec.containers[0].env[28].value: environment, command and args are larger than 1 MiB in all"},
		{"a probe", "    livenessProbe: {exec: {command: [$(A)$(A)]}}\n    env: [{name: A, value: " + strings.Repeat("x", 70<<10) + "}]\n",
			"8:38 spec.containers[0].livenessProbe.exec.command[0]" + long},
		{"a path in a volume", "    volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(A9)}]\n" + env + "  volumes: [{name: v, emptyDir: {}}]\n",
			"8:58 spec.containers[0].volumeMounts[0].subPathExpr: longer than 4095 bytes once its variables are expanded"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var problems []decode.Problem
			spent := allocated(func() { _, problems = documents.Decode("/m/x.yaml", []byte(head+row.text), node1) })
			checkWords(t, problems, row.problem)
			if spent > 6<<20 {
				t.Errorf("%d bytes were allocated", spent)
			}
		})
	}
}
