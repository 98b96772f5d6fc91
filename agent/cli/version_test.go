package cli

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

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
		{"a commit's date", "", built("v1.2.3", "vcs.revision=0123456789abcdef", "vcs.time=2026-11-22T12:14:53Z"),
			"monopod v1.2.3 (0123456789ab of 2026-11-22 12:14:53 UTC, go1.26.0, linux/amd64)\n"},
		{"a commit's date that is none", "", built("v1.2.3", "vcs.revision=0123456789abcdef", "vcs.time=lately"),
			"monopod v1.2.3 (0123456789ab of lately, go1.26.0, linux/amd64)\n"},
		{"for programs a date is RFC 3339", "yaml", built("v1", "vcs.revision=01", "vcs.time=2026-11-22T12:14:53Z"),
			"commit: \"01\"\ndate: \"2026-11-22T12:14:53Z\"\ngoVersion: go1.26.0\nplatform: linux/amd64\nversion: v1\n"},
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
}
