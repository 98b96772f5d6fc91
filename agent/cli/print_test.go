package cli

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"

	"monopod/agent/cli/clitest"
	"monopod/agent/status"
)

func TestPrintProblems(t *testing.T) {
	rows := []struct {
		name  string
		files []Checked
		want  Counts
	}{
		{"nothing", nil, Counts{}},
		{"one good", []Checked{{Path: "web.yaml", Pods: []CheckedPod{{"default/web", 1}}}}, Counts{Files: 1, Pods: 1}},
		{"mixed", []Checked{
			{Path: "m/many.yaml", Pods: []CheckedPod{{"default/a", 2}, {"default/b", 1}, {"default/e", 1}}},
			{Path: "m/bad.yaml", Pods: []CheckedPod{{"default/c", 1}}, Problems: []status.Problem{
				{File: "m/bad.yaml", Line: 3, Column: 5, Field: "spec.containers[0].imag", Message: "unknown field"},
				{File: "m/bad.yaml", Message: "has no name"},
			}},
			{Path: "m/warned.yaml", Pods: []CheckedPod{{"kube-system/d", 3}}, Problems: []status.Problem{
				{File: "m/warned.yaml", Line: 9, Column: 1, Field: "spec.x", Message: "has no effect", Warning: true},
			}},
			{Path: "m/empty.yaml"},
		}, Counts{Files: 4, Pods: 5, Problems: 2, Warnings: 1}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var out bytes.Buffer
			n, err := PrintProblems(&out, r.files)
			if err != nil || n != r.want {
				t.Errorf("counts %+v, %v; want %+v", n, err, r.want)
			}
			clitest.Golden(t, out.String())
		})
	}
}

func TestVersion(t *testing.T) {
	built := func(version string, settings ...string) *debug.BuildInfo {
		b := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: version}}
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			b.Settings = append(b.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		return b
	}
	rows := []struct {
		name, output string
		info         *debug.BuildInfo
		want         string
	}{
		{"a release", "", built("v1.2.3", "vcs.revision=0123456789abcdef", "vcs.modified=false"),
			"monopod v1.2.3 (0123456789ab, go1.26.0, linux/amd64)\n"},
		{"changed files", "", built("(devel)", "vcs.revision=0123456789abcdef", "vcs.modified=true"),
			"monopod devel (0123456789ab-dirty, go1.26.0, linux/amd64)\n"},
		{"no repository", "", built(""), "monopod unknown (go1.26.0, linux/amd64)\n"},
		{"json", "json", built("v1", "vcs.revision=01"),
			"{\n  \"version\": \"v1\",\n  \"commit\": \"01\",\n  \"goVersion\": \"go1.26.0\",\n  \"platform\": \"linux/amd64\"\n}\n"},
		{"yaml", "yaml", built("v1"), "goVersion: go1.26.0\nplatform: linux/amd64\nversion: v1\n"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := PrintVersion(&out, r.output, versionOf(r.info, "linux/amd64")); err != nil || out.String() != r.want {
				t.Errorf("printed %q, %v\nwant %q", out.String(), err, r.want)
			}
		})
	}
	if err := PrintVersion(&bytes.Buffer{}, "xml", Version()); err == nil || err.Error() != `output "xml" is not one of json, yaml` {
		t.Errorf("PrintVersion = %v", err)
	}
}
