package check_test

import (
	"bytes"
	"testing"

	"monopod/agent/cli/check"
	"monopod/agent/cli/clitest"
	"monopod/agent/status"
)

func TestPrintProblems(t *testing.T) {
	rows := []struct {
		name  string
		files []check.File
		want  check.Counts
	}{
		{"nothing", nil, check.Counts{}},
		{"one good", []check.File{{Path: "web.yaml", Pods: []check.Pod{{Name: "default/web", Containers: 1}}}}, check.Counts{Files: 1, Pods: 1}},
		{"mixed", []check.File{
			{Path: "m/many.yaml", Pods: []check.Pod{{Name: "default/a", Containers: 2}, {Name: "default/b", Containers: 1}, {Name: "default/e", Containers: 1}}},
			{Path: "m/bad.yaml", Pods: []check.Pod{{Name: "default/c", Containers: 1}}, Problems: []status.Problem{
				{File: "m/bad.yaml", Line: 3, Column: 5, Field: "spec.containers[0].imag", Message: "unknown field"},
				{File: "m/bad.yaml", Message: "has no name"},
			}},
			{Path: "m/warned.yaml", Pods: []check.Pod{{Name: "kube-system/d", Containers: 3}}, Problems: []status.Problem{
				{File: "m/warned.yaml", Line: 9, Column: 1, Field: "spec.x", Message: "has no effect", Warning: true},
			}},
			{Path: "m/empty.yaml"},
		}, check.Counts{Files: 4, Pods: 5, Problems: 2, Warnings: 1}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var out bytes.Buffer
			n, err := check.Print(&out, r.files)
			if err != nil || n != r.want {
				t.Errorf("counts %+v, %v; want %+v", n, err, r.want)
			}
			clitest.Golden(t, out.String())
		})
	}
}
