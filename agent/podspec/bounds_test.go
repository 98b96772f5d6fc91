package podspec

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"monopod/manifests/decode"
)

// doubledEnv is variables that are each twice the one before; the first is a
// value that the manifest does not hold.
func doubledEnv(n int) []v1.EnvVar {
	vars := []v1.EnvVar{{Name: "A0", ValueFrom: field("metadata.annotations['big']")}}
	for i := 1; i <= n; i++ {
		vars = append(vars, v1.EnvVar{Name: fmt.Sprintf("A%d", i), Value: strings.Repeat(fmt.Sprintf("$(A%d)", i-1), 2)})
	}
	return vars
}

func TestExpansionIsBoundedAtCreation(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(c *v1.Container)
		want   string
	}{
		{"a value", func(c *v1.Container) { c.Env = doubledEnv(40) }, "env A7: longer than 128 KiB once its variables are expanded"},
		{"a value of another object", func(c *v1.Container) {
			c.Env = []v1.EnvVar{{Name: "B", ValueFrom: field("metadata.annotations['huge']")}}
		},
			"env B: longer than 128 KiB"},
		{"a command", func(c *v1.Container) { c.Env, c.Command = doubledEnv(5), []string{"sh", "$(A5)$(A5)$(A5)"} }, "command[1]: longer than 128 KiB"},
		{"arguments", func(c *v1.Container) {
			c.Env, c.Args = doubledEnv(5), strings.Split(strings.Repeat("$(A5) ", 40), " ")
		}, "args[14]: environment, command and args are larger than 1 MiB in all"},
		{"variables", func(c *v1.Container) {
			c.Env = doubledEnv(5)
			for i := range 40 {
				c.Env = append(c.Env, v1.EnvVar{Name: fmt.Sprintf("B%d", i), Value: "$(A5)"})
			}
		}, "env B14: environment, command and args are larger than 1 MiB in all"},
		{"a variable as long as one may be", func(c *v1.Container) {
			c.Env = []v1.EnvVar{{Name: "B", Value: strings.Repeat("x", decode.MaxString-3)}}
		}, ""},
		{"one that is longer", func(c *v1.Container) {
			c.Env = []v1.EnvVar{{Name: "B", Value: strings.Repeat("x", decode.MaxString-2)}}
		}, "env B: longer than 128 KiB"},
		{"an argument as long as one may be", func(c *v1.Container) { c.Args = []string{strings.Repeat("x", decode.MaxString-1)} }, ""},
		{"an argument that is longer", func(c *v1.Container) { c.Args = []string{strings.Repeat("x", decode.MaxString)} }, "args[0]: longer than 128 KiB"},
		{"as much as all may be", func(c *v1.Container) { c.Args = slices.Repeat([]string{strings.Repeat("x", decode.MaxString-1)}, 8) }, ""},
		{"more than that", func(c *v1.Container) {
			c.Args = append(slices.Repeat([]string{strings.Repeat("x", decode.MaxString-1)}, 8), "")
		}, "args[8]: environment, command and args are larger than 1 MiB in all"},
		{"one variable often", func(c *v1.Container) {
			c.Env = doubledEnv(5)
			for range 40 {
				c.Env = append(c.Env, v1.EnvVar{Name: "B", Value: "$(A5)"})
			}
		}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := specPod(func(p *v1.Pod) {
				p.Annotations = map[string]string{"big": strings.Repeat("x", 2<<10-8), "huge": strings.Repeat("x", 200<<10)}
				row.change(&p.Spec.Containers[0])
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := ContainerConfig(p, &p.Spec.Containers[0], Input{}, specNode())
			runtime.ReadMemStats(&after)
			if got := errText(err); !strings.HasPrefix(got, row.want) || (got == "") != (row.want == "") {
				t.Errorf("got %.200s, want %s", got, row.want)
			}
			if spent := after.TotalAlloc - before.TotalAlloc; spent > 16<<20 {
				t.Errorf("%d bytes were allocated", spent)
			}
		})
	}
}

func TestSubPathExprIsBounded(t *testing.T) {
	p := specPod(func(p *v1.Pod) {
		p.Annotations = map[string]string{"big": strings.Repeat("x", 2<<10)}
		c := &p.Spec.Containers[0]
		c.Env = doubledEnv(5)
		c.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v", SubPathExpr: strings.Repeat("$(A5)", 1000)}}
	})
	_, err := SubPaths(p, &p.Spec.Containers[0], Input{}, specNode())
	if got := errText(err); !strings.HasPrefix(got, `subPathExpr of "$(A5)`) || !strings.Contains(got, "longer than 4095 bytes") {
		t.Errorf("got %.200s", got)
	}
}

func TestASubPathExprMayBeAsLongAsAPath(t *testing.T) {
	for length, want := range map[int]string{decode.MaxSubPath - 1: "", decode.MaxSubPath: "longer than 4095 bytes"} {
		e := &Env{Values: map[string]string{"A": strings.Repeat("x", length-1)}}
		if _, err := e.expandStrict("y$(A)"); !strings.Contains(errText(err), want) || (want == "") != (err == nil) {
			t.Errorf("%d bytes: %.200s", length, errText(err))
		}
	}
}
